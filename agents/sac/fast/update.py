"""Gradient step of SAC without autograd: the same computation in a fraction of the time.

The actor's loss requires only the gradient with respect to the actions, not the critics' weights, and for each row only
through the critic with the minimum value. The remaining cost is dominated by matrix products. Parameters, gradients and
optimisers are those of the policy, so saving, loading and resuming need no special handling.
"""

from itertools import chain
from typing import Any, Protocol, cast

import torch
from gymnasium import spaces
from jaxtyping import Float
from stable_baselines3.common.policies import ContinuousCritic
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.sac.policies import Actor
from torch import Tensor
from torch.nn import functional as F
from torch.nn.modules.module import _has_any_global_hook

from agents.replay.buffer import Batch
from agents.sac.fast.encoder import make_encoder_pass
from agents.sac.fast.linear import Scratch, round_weights
from agents.sac.fast.mlp import Network, is_linear, is_written_out
from agents.sac.fast.tanh_gaussian import Draw, draw, through_draw
from agents.sac.policy import SharedActor, SharedCritic

HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_post_accumulate_grad_hooks",
)
BLOCK = 64  # numbers of rows are rounded up to a multiple, as the library compiles each bfloat16 product size anew


class Learner(Protocol):
    """Attributes of an agent that a gradient step requires, with the names of Stable-Baselines3."""

    policy: Any
    actor: Any
    critic: Any
    critic_target: Any
    device: torch.device
    log_ent_coef: Any
    ent_coef_optimizer: Any
    ent_coef_tensor: Tensor
    target_entropy: Any
    backup_entropy: bool
    cloning: float

    @property
    def discount(self) -> float:
        """Discount γ̄ of the current step."""

    def clip_target(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the targets clipped to the bounds, and the share of targets outside."""


def is_supported(agent: Learner) -> bool:
    """Return whether `Update` gives the same result as autograd for the agent's current networks."""
    actor, critic, target = networks = cast(Any, (agent.actor, agent.critic, agent.critic_target))
    kinds = (type(actor), type(critic), type(target))
    shared = kinds == (SharedActor, SharedCritic, SharedCritic) and isinstance(actor.observation_space, spaces.Box)
    stock = kinds == (Actor, ContinuousCritic, ContinuousCritic) and all(
        type(network.features_extractor) is FlattenExtractor for network in networks
    )
    if not shared and not stock:
        return False
    linear = all(map(is_written_out, [actor.latent_pi, *critic.q_networks, *target.q_networks]))
    if not linear or not all(map(is_linear, (actor.mu, actor.log_std))):
        return False
    learned = [actor.latent_pi, actor.mu, actor.log_std, *critic.q_networks]
    parameters = [p for network in learned for _, p in network.named_parameters(remove_duplicate=False)]
    if agent.ent_coef_optimizer is not None:
        parameters.append(cast(Any, agent.log_ent_coef))
    return (
        all(p.requires_grad for p in parameters)
        and len(set(parameters)) == len(parameters)  # gradients of a layer that is used twice are not summed
        and all(p.dtype == torch.float32 for p in agent.policy.parameters())
        and not Networks(agent).hooked
    )


class Networks:
    """Snapshot of the modules and parameters of an agent's networks, including the temperature.

    Two snapshots are equal if no part was replaced, frozen, converted or given a hook or another `forward` in between.

    Args:
        agent: Agent with the networks.
    """

    def __init__(self, agent: Learner) -> None:
        critics: list[Any] = [agent.critic, agent.critic_target]
        used = [agent.policy, *(q for critic in critics for q in getattr(critic, "q_networks", ()))]
        modules = dict.fromkeys(module for network in used for module in network.modules())
        parameters = dict.fromkeys(parameter for network in used for parameter in network.parameters())
        if agent.log_ent_coef is not None:
            parameters[cast(Any, agent.log_ent_coef)] = None
        self.parts: list[Any] = [*modules, *parameters]
        self.settings = [(p.requires_grad, p.dtype, p.device) for p in parameters]
        self.hooked = (
            _has_any_global_hook()
            or any(getattr(x, name, None) for x in self.parts for name in HOOKS)
            or any("forward" in vars(module) for module in modules)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Networks) and self._key() == other._key()

    def _key(self) -> tuple[Any, ...]:
        return [id(part) for part in self.parts], self.settings, self.hooked


class Update:
    """Gradient step on an agent's networks without autograd.

    Args:
        agent: Agent whose networks are supported (`is_supported`).
        dtype: Number format of hidden activations and of the products between them. Parameters, their gradients,
            external inputs, values and sums stay in float32.
    """

    def __init__(self, agent: Learner, dtype: torch.dtype = torch.float32) -> None:
        self.agent, self.dtype, self.size = agent, dtype, 0

    def _prepare(self, batch: Batch) -> None:
        """Make the networks for batches of the size of `batch`."""
        size = len(batch.rewards)
        agent, scratch = self.agent, Scratch(self.agent.device)
        actor: Any = agent.actor
        learned = any(True for _ in actor.features_extractor.parameters())
        self.source = self.dtype if learned else torch.float32  # learned features are hidden activations
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
        """Take a gradient step on temperature, critic and actor.

        Returns:
            Losses, temperature, entropy, mean value, mean target and share of clipped targets, for the log.
        """
        agent = self.agent
        batch = self._preprocessed(batch)
        if len(batch.rewards) != self.size:
            self._prepare(batch)
        round_weights(chain.from_iterable(part.layers for part in self.parts))
        features, next_features = self._features(batch)
        following = self.actor.forward(next_features)
        drawn, next_drawn = draw(torch.cat([self.actor.forward(features), following]), self.size)
        ent_coef = self._update_temperature(drawn.log_prob)
        target, clipped = agent.clip_target(self._target(batch, next_features, next_drawn, ent_coef))
        values = self._update_critics(features, batch.actions, target, trained=batch.features is None)
        value, slope = self._values_and_slope(features, drawn.actions)
        if agent.cloning:  # with the value as the actor's loss has it, −Q + cloning · |a − a_stored|²
            apart = drawn.actions - batch.actions
            slope.add_(apart, alpha=2 * agent.cloning / self.size)
            value = value - agent.cloning * apart.square().sum(dim=1, keepdim=True)
        self.actor.backward(through_draw(drawn, slope, ent_coef / self.size))
        agent.actor.optimizer.step()
        return _log(values, target, value, drawn.log_prob, ent_coef) | {"clipped_targets": clipped.item()}

    def _preprocessed(self, batch: Batch) -> Batch:
        """Scale images, one-hot encode discrete observations and convert to float32, as in Stable-Baselines3."""
        actor = self.agent.actor
        observations, following = (
            cast(Tensor, preprocess_obs(seen, actor.observation_space, normalize_images=actor.normalize_images))
            for seen in (batch.observations, batch.next_observations)
        )
        return batch._replace(observations=observations, next_observations=following)

    def _features(self, batch: Batch) -> tuple[Float[Tensor, "batch features"], Float[Tensor, "batch features"]]:
        if batch.features is not None and batch.next_features is not None:
            return batch.features.to(self.source), batch.next_features.to(self.source)
        # The target encoder runs first, because the encoders share memory for their activations.
        next_features = self.target_encoder.forward(batch.next_observations)
        return self.encoder.forward(batch.observations).to(self.source), next_features.to(self.source)

    def _update_temperature(self, log_prob: Float[Tensor, "batch 1"]) -> Tensor:
        """Take a gradient step on −log α · (log π + target entropy), and return α before the step."""
        agent = self.agent
        if agent.ent_coef_optimizer is None or agent.log_ent_coef is None:
            return agent.ent_coef_tensor
        ent_coef = agent.log_ent_coef.exp()
        agent.log_ent_coef.grad = -float(agent.target_entropy) - log_prob.mean(dim=0)
        agent.ent_coef_optimizer.step()
        return ent_coef

    def _target(
        self, batch: Batch, next_features: Tensor, following: Draw, ent_coef: Tensor
    ) -> Float[Tensor, "batch 1"]:
        """Return R + γ̄ (1 − terminal) [min Q′(s′, a′) − α log π(a′|s′)]."""
        x = torch.cat([next_features, following.actions.to(self.source)], dim=1)
        value = torch.cat([critic.forward(x) for critic in self.targets], dim=1).amin(dim=1, keepdim=True)
        if self.agent.backup_entropy:
            value.addcmul_(ent_coef, following.log_prob, value=-1)
        discount = self.agent.discount
        if batch.discounts is not None:
            discount, value = 1.0, value * batch.discounts
        return torch.addcmul(batch.rewards, 1 - batch.dones, value, value=discount)

    def _update_critics(
        self, features: Tensor, actions: Tensor, target: Tensor, trained: bool
    ) -> Float[Tensor, "batch critic"]:
        """Take a gradient step on ½ Σ_i mean (Q_i − target)², and return the values Q_i before the step.

        If the encoder is trained, it receives the sum of the critics' gradients.
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
        self.agent.critic.optimizer.step()
        round_weights(chain.from_iterable(critic.layers for critic in self.critics))
        return torch.cat(values, dim=1)

    def _values_and_slope(
        self, features: Tensor, actions: Tensor
    ) -> tuple[Float[Tensor, "batch 1"], Float[Tensor, "batch action"]]:
        """Return min Q(s, a), and the gradient of its negative mean with respect to the actions."""
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
    """Return means over the batch by name, for the log."""
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
