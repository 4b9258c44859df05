"""SAC's gradient step without autograd: the same mathematics, about half the cost.

Of the actor's loss only the gradient of the actions is needed, none of the critics' weights, and of each row only
through the critic that has the minimum. What is left is almost only matrix products. Parameters, their gradients and
the optimisers stay the policy's own, so saving, loading and continuing need nothing special.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from agents.network import Network, Scratch, is_written_out
from agents.replay import Batch
from shaping.value import LOG_STD_RANGE

if TYPE_CHECKING:
    from agents.sac import SAC

LOG_PROB_EPSILON = 1e-6


def is_supported(agent: "SAC") -> bool:
    """Whether the agent's networks are what `Update` writes out; with others autograd has to do it."""
    modules = [agent.actor.latent_pi, *agent.critic.q_networks]
    heads = (agent.actor.mu, agent.actor.log_std)
    return all(map(is_written_out, modules)) and all(type(head) is nn.Linear for head in heads)


class Draw(NamedTuple):
    """A sample of the tanh-Gaussian policy, with what its gradient needs."""

    actions: Float[Tensor, "batch action"]
    log_prob: Float[Tensor, "batch 1"]
    raw_log_std: Float[Tensor, "batch action"]  # before it is clamped
    noise: Float[Tensor, "batch action"]


class Update:
    """Gradient steps on an agent's networks.

    Args:
        agent: Its networks must be `is_supported`.
        dtype: Of the products between hidden layers. Parameters, their gradients, values and sums stay in float32.
    """

    def __init__(self, agent: "SAC", dtype: torch.dtype = torch.float32) -> None:
        self.agent = agent
        actor: Any = agent.actor
        shared: dict[str, Any] = {"dtype": dtype, "scratch": Scratch()}
        self.actor = Network(actor.latent_pi, [actor.mu, actor.log_std], name="actor", **shared)
        self.critics = [Network(q, name=f"critic {i}", **shared) for i, q in enumerate(agent.critic.q_networks)]
        # The targets go first and need no backward pass.
        self.targets = [Network(q, name="critic 0", **shared) for q in agent.critic_target.q_networks]
        self.online_parameters: list[Tensor] = list(agent.critic.parameters())
        self.target_parameters: list[Tensor] = list(agent.critic_target.parameters())
        self.encoder_parameters = [p for p in agent.actor.features_extractor.parameters() if p.requires_grad]

    @torch.no_grad()
    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        """Take one gradient step on every network.

        Returns:
            Scalars for the log: losses, temperature, mean value and target.
        """
        agent = self.agent
        with torch.enable_grad():
            encoded, next_features = agent._features(batch)
        features = encoded.detach()
        size = len(features)

        draw, following = _draw(self.actor.forward(torch.cat([features, next_features])), size)
        self.actor.select(slice(size))
        ent_coef = self._update_temperature(draw.log_prob)
        target = self._target(batch, next_features, following, ent_coef)
        values = self._update_critics(encoded, batch.actions, target)
        value, slope = self._values_and_slope(features, draw.actions)
        self.actor.backward(_through_draw(draw, -slope / size, ent_coef / size))
        step(agent.actor.optimizer)
        torch._foreach_lerp_(self.target_parameters, self.online_parameters, agent.tau)
        return {
            "critic_loss": 0.5 * (values - target).square().sum() / size,
            "actor_loss": (ent_coef * draw.log_prob - value).mean(),
            "ent_coef": ent_coef.mean(),
            "entropy": -draw.log_prob.mean(),
            "value": values.mean(),
            "target": target.mean(),
        }

    def _update_temperature(self, log_prob: Float[Tensor, "batch 1"]) -> Tensor:
        """Step on −log α · (log π + target entropy), and return α before it."""
        agent = self.agent
        if agent.ent_coef_optimizer is None or agent.log_ent_coef is None:
            return agent.ent_coef_tensor
        ent_coef = agent.log_ent_coef.exp()
        agent.log_ent_coef.grad = -(log_prob.mean() + float(agent.target_entropy)).reshape(1)
        step(agent.ent_coef_optimizer)
        return ent_coef

    def _target(
        self, batch: Batch, next_features: Tensor, following: Draw, ent_coef: Tensor
    ) -> Float[Tensor, "batch 1"]:
        """R + γ̄ (1 − terminal) [min Q′(s′, a′) − α log π(a′|s′)], within the agent's bounds."""
        x = torch.cat([next_features, following.actions], dim=1)
        value = torch.cat([critic.forward(x) for critic in self.targets], dim=1).amin(dim=1, keepdim=True)
        if self.agent.entropy_in_target:
            value = value - ent_coef * following.log_prob
        target = batch.rewards + self.agent.discount * (1 - batch.dones) * value
        return target if self.agent.target_bounds is None else target.clamp(*self.agent.target_bounds)

    def _update_critics(self, encoded: Tensor, actions: Tensor, target: Tensor) -> Float[Tensor, "batch critic"]:
        """Step on ½ Σ_i mean (Q_i − target)², and return the Q_i before it.

        The encoder, where it is trained, receives the gradient from autograd.
        """
        x, columns = torch.cat([encoded.detach(), actions], dim=1), slice(encoded.shape[1])
        values, slopes = [], []
        for critic in self.critics:
            values.append(critic.forward(x))
            grad = critic.backward((values[-1] - target) / len(x))
            if encoded.requires_grad:
                slopes.append(critic.input_gradient(grad, columns))
        if encoded.requires_grad:
            for parameter in self.encoder_parameters:
                parameter.grad = None
            encoded.backward(torch.stack(slopes).sum(0))
        step(self.agent.critic.optimizer)
        return torch.cat(values, dim=1)

    def _values_and_slope(
        self, features: Tensor, actions: Tensor
    ) -> tuple[Float[Tensor, "batch 1"], Float[Tensor, "batch action"]]:
        """Return min Q(s, a) and its gradient in the actions."""
        x = torch.cat([features, actions], dim=1)
        value, least = torch.cat([critic.forward(x) for critic in self.critics], dim=1).min(dim=1, keepdim=True)
        slope = torch.empty_like(actions)
        for index, critic in enumerate(self.critics):
            rows = (least[:, 0] == index).nonzero()[:, 0]
            critic.select(rows)
            grad = critic.backward(value.new_ones(len(rows), 1), weights=False)
            slope[rows] = critic.input_gradient(grad, slice(features.shape[1], None))
        return value, slope


def step(optimizer: torch.optim.Optimizer) -> None:
    """Take an optimiser's step; Adam's without what its general form costs beside the arithmetic.

    The state stays the optimiser's own, and becomes what its own `step` would make of it.
    """
    group = optimizer.param_groups[0]
    parameters = [p for p in group["params"] if p.grad is not None]
    states = [optimizer.state[p] for p in parameters]
    special = any(group.get(name) for name in ("amsgrad", "maximize", "capturable", "decoupled_weight_decay"))
    if type(optimizer) is not torch.optim.Adam or special or len(optimizer.param_groups) > 1 or not all(states):
        optimizer.step()
        return
    steps = [state["step"] for state in states]
    if steps[0].device != parameters[0].device:  # on a GPU, unless Adam was made with fused=True
        optimizer.step()
        return
    torch._foreach_add_(steps, 1)
    torch._fused_adam_(
        parameters,
        [p.grad for p in parameters],
        [state["exp_avg"] for state in states],
        [state["exp_avg_sq"] for state in states],
        [],
        steps,
        lr=group["lr"],
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        weight_decay=group["weight_decay"],
        eps=group["eps"],
        amsgrad=False,
        maximize=False,
    )


def _draw(outputs: Float[Tensor, "rows twice_action"], size: int) -> list[Draw]:
    """Draw actions for every `size` rows of the actor's outputs, in order: the noise is that of separate passes."""
    mean, raw = outputs.chunk(2, dim=1)
    log_std = raw.clamp(*LOG_STD_RANGE)
    noise = torch.cat([torch.randn_like(part) for part in mean.split(size)])
    actions = torch.tanh(mean + log_std.exp() * noise)
    gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    log_prob = (gaussian - torch.log(1 - actions.square() + LOG_PROB_EPSILON)).sum(dim=1, keepdim=True)
    return [Draw(*parts) for parts in zip(*(x.split(size) for x in (actions, log_prob, raw, noise)), strict=True)]


def _through_draw(
    draw: Draw, value_slope: Float[Tensor, "batch action"], weight: Tensor
) -> Float[Tensor, "batch twice_action"]:
    """Gradient of weight · log π(a) + value term for the actor's outputs, a = tanh(mean + exp(log std) · noise).

    ∂L/∂a = weight · 2a / (1 − a² + ε) + value_slope, ∂a/∂mean = 1 − a², ∂(−log std)/∂(log std) = −1
    """
    rest = 1 - draw.actions.square()
    slope = (weight * 2 * draw.actions / (rest + LOG_PROB_EPSILON) + value_slope) * rest
    log_std = draw.raw_log_std.clamp(*LOG_STD_RANGE)
    inside = log_std == draw.raw_log_std  # the clamp stops the gradient outside
    return torch.cat([slope, (slope * log_std.exp() * draw.noise - weight) * inside], dim=1)
