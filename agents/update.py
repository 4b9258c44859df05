"""SAC's gradient step without autograd: the same mathematics in a fraction of the time.

Of the actor's loss only the gradient of the actions is needed, none of the critics' weights, and of each row only
through the critic that has the minimum. What is left is almost only matrix products. Parameters, their gradients and
the optimisers stay the policy's own, so saving, loading and continuing need nothing special.
"""

from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from agents.adam import step
from agents.encoders import make_encoder_pass
from agents.layers import Scratch, round_weights
from agents.network import Network, is_written_out
from agents.replay import Batch
from agents.squashed import Draw, draw, through_draw

if TYPE_CHECKING:
    from agents.sac import SAC

BLOCK = 64  # rows; products of few different sizes, for the library compiles one for every size in bfloat16


def is_supported(agent: "SAC") -> bool:
    """Whether the agent's networks are what `Update` writes out; with others autograd has to do it."""
    modules = [agent.actor.latent_pi, *agent.critic.q_networks]
    heads = (agent.actor.mu, agent.actor.log_std)
    return all(map(is_written_out, modules)) and all(type(head) is nn.Linear for head in heads)


class Update:
    """Gradient steps on an agent's networks.

    Args:
        agent: Its networks must be `is_supported`.
        dtype: Of hidden activations and of the products between them. Parameters, their gradients, what comes from
            outside, values and sums stay in float32.
    """

    def __init__(self, agent: "SAC", dtype: torch.dtype = torch.float32) -> None:
        self.agent, self.dtype, self.size = agent, dtype, 0
        self.online_parameters: list[Tensor] = list(agent.critic.parameters())
        self.target_parameters: list[Tensor] = list(agent.critic_target.parameters())

    def _prepare(self, batch: Batch) -> None:
        """Make the networks for batches of this size."""
        size = len(batch.rewards)
        agent, scratch = self.agent, Scratch(self.agent.device)
        actor: Any = agent.actor
        learned = any(True for _ in actor.features_extractor.parameters())
        self.source = self.dtype if learned else torch.float32  # learned features are activations like others
        shared: dict[str, Any] = {"rows": size, "source": self.source, "dtype": self.dtype, "scratch": scratch}
        self.actor = Network(actor.latent_pi, [actor.mu, actor.log_std], name="actor", **shared)
        self.critics = [Network(q, name=f"critic {i}", **shared) for i, q in enumerate(agent.critic.q_networks)]
        self.targets = [Network(q, name="critic 0", **shared) for q in agent.critic_target.q_networks]
        self.encoder, self.target_encoder = (
            make_encoder_pass(extractor, batch.observations.shape, trained=trained, dtype=self.dtype, scratch=scratch)
            for extractor, trained in (
                (actor.features_extractor, True),
                (agent.critic_target.features_extractor, False),
            )
        )
        self.parts: tuple[Any, ...] = (self.encoder, self.target_encoder, self.actor, *self.targets, *self.critics)
        self.size = size

    @torch.no_grad()
    def __call__(self, batch: Batch) -> dict[str, float]:
        """Take one gradient step on every network.

        Returns:
            For the log: losses, temperature, mean value and target.
        """
        agent = self.agent
        if len(batch.rewards) != self.size:
            self._prepare(batch)
        round_weights(chain.from_iterable(part.layers for part in self.parts))
        features, next_features = self._features(batch)
        following = self.actor.forward(next_features)
        drawn, next_drawn = draw(torch.cat([self.actor.forward(features), following]), self.size)
        ent_coef = self._update_temperature(drawn.log_prob)
        target = self._target(batch, next_features, next_drawn, ent_coef)
        values = self._update_critics(features, batch.actions, target, trained=batch.features is None)
        value, slope = self._values_and_slope(features, drawn.actions)
        self.actor.backward(through_draw(drawn, slope, ent_coef / self.size))
        step(agent.actor.optimizer)
        torch._foreach_lerp_(self.target_parameters, self.online_parameters, agent.tau)
        agent._copy_statistics()
        return _log(values, target, value, drawn.log_prob, ent_coef)

    def _features(self, batch: Batch) -> tuple[Float[Tensor, "batch features"], Float[Tensor, "batch features"]]:
        if batch.features is not None and batch.next_features is not None:
            return batch.features.to(self.source), batch.next_features.to(self.source)
        next_features = self.target_encoder.forward(batch.next_observations)  # first: the other's activations are kept
        return self.encoder.forward(batch.observations).to(self.source), next_features.to(self.source)

    def _update_temperature(self, log_prob: Float[Tensor, "batch 1"]) -> Tensor:
        """Step on −log α · (log π + target entropy), and return α before it."""
        agent = self.agent
        if agent.ent_coef_optimizer is None or agent.log_ent_coef is None:
            return agent.ent_coef_tensor
        ent_coef = agent.log_ent_coef.exp()
        agent.log_ent_coef.grad = -float(agent.target_entropy) - log_prob.mean(dim=0)
        step(agent.ent_coef_optimizer)
        return ent_coef

    def _target(
        self, batch: Batch, next_features: Tensor, following: Draw, ent_coef: Tensor
    ) -> Float[Tensor, "batch 1"]:
        """R + γ̄ (1 − terminal) [min Q′(s′, a′) − α log π(a′|s′)], within the agent's bounds."""
        x = torch.cat([next_features, following.actions.to(self.source)], dim=1)
        value = torch.cat([critic.forward(x) for critic in self.targets], dim=1).amin(dim=1, keepdim=True)
        if self.agent.entropy_in_target:
            value.addcmul_(ent_coef, following.log_prob, value=-1)
        target = torch.addcmul(batch.rewards, 1 - batch.dones, value, value=self.agent.discount)
        return target if self.agent.target_bounds is None else target.clamp_(*self.agent.target_bounds)

    def _update_critics(
        self, features: Tensor, actions: Tensor, target: Tensor, trained: bool
    ) -> Float[Tensor, "batch critic"]:
        """Step on ½ Σ_i mean (Q_i − target)², and return the Q_i before it.

        The encoder, where it is trained, receives the sum of the critics' gradients.
        """
        x = torch.cat([features, actions.to(self.source)], dim=1)
        trained = trained and self.encoder.trained
        values, slopes = [], []
        for critic in self.critics:
            values.append(critic.forward(x))
            grad = critic.backward((values[-1] - target).mul_(1 / self.size))
            if trained:
                slopes.append(critic.input_gradient(grad, slice(features.shape[1])))
        if trained:
            self.encoder.backward(torch.stack(slopes).sum(dim=0))
        step(self.agent.critic.optimizer)
        round_weights(chain.from_iterable(critic.layers for critic in self.critics))
        return torch.cat(values, dim=1)

    def _values_and_slope(
        self, features: Tensor, actions: Tensor
    ) -> tuple[Float[Tensor, "batch 1"], Float[Tensor, "batch action"]]:
        """Return min Q(s, a), and the gradient of minus its mean in the actions."""
        x = torch.cat([features, actions.to(self.source)], dim=1)
        value, least = torch.cat([critic.forward(x) for critic in self.critics], dim=1).min(dim=1)
        slope = torch.empty_like(actions, dtype=self.dtype)
        for index, critic in enumerate(self.critics):
            rows = (least == index).nonzero()[:, 0]
            filled = F.pad(rows, (0, min(-len(rows) % BLOCK, self.size - len(rows))))
            critic.select(filled)
            grad = critic.backward(value.new_full((len(filled), 1), -1 / self.size), weights=False)
            found = critic.input_gradient(grad, slice(features.shape[1], x.shape[1]))
            slope.index_copy_(0, rows, found[: len(rows)])
        return value[:, None], slope.to(actions.dtype)


def _log(
    values: Float[Tensor, "batch critic"],
    target: Float[Tensor, "batch 1"],
    value: Float[Tensor, "batch 1"],
    log_prob: Float[Tensor, "batch 1"],
    ent_coef: Tensor,
) -> dict[str, float]:
    """Means over the batch, by name."""
    columns = torch.cat([target, value, log_prob, values, (values - target).square_()], dim=1)
    mean_target, mean_value, mean_log_prob, *means = columns.mean(dim=0).tolist()
    critics, temperature = values.shape[1], ent_coef.item()
    return {
        "critic_loss": 0.5 * sum(means[critics:]),
        "actor_loss": temperature * mean_log_prob - mean_value,
        "ent_coef": temperature,
        "entropy": -mean_log_prob,
        "value": sum(means[:critics]) / critics,
        "target": mean_target,
    }
