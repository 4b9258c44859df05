"""Soft actor-critic with clipped targets and an annealed discount, as a Stable-Baselines3 algorithm."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from stable_baselines3 import SAC as StockSAC
from stable_baselines3.common.buffers import NStepReplayBuffer
from torch import Tensor
from torch.nn import functional as F

from agents.finite import check_finite
from agents.guide import Guide
from agents.hardware import resolve_precision
from agents.replay import Batch
from agents.update import Update, is_supported
from shaping.discount import linear_annealing
from shaping.value import LOG_STD_RANGE


class SAC(StockSAC):
    """SAC (Haarnoja et al. 2018) with what the paper adds to it, and what makes its value count steps.

    `load` is Stable-Baselines3's: it unpickles, so that a file from somebody else can run code. Run directories and
    their checkpoints do not use it; `agents.runs.load_policy` reads a policy from them as data. A loaded agent has its
    potential, but neither guide nor transitions, demonstrated ones included.

    Args:
        *args: As for Stable-Baselines3's SAC.
        target_bounds: Range of the critic's targets; None leaves them unclipped (paper: [−2, 1], the prior [0, 1]).
        entropy_in_target: Keep the entropy bonus in the critic's target. Without it the value is that of the reward
            alone; the bonus stays in the actor's loss.
        annealing_steps: Environment steps over which the discount rises linearly from 0 to `gamma` (paper, sec. 3.4).
        precision: Of the products between hidden layers; "auto" is bfloat16 where the device multiplies in it.
            Parameters, their gradients, values and sums stay in float32.
        **kwargs: As for Stable-Baselines3's SAC.

    Raises:
        ValueError: The device, or the gradient step of these networks, has no such precision; or a setting that
            Stable-Baselines3's update heeds and this one does not.
    """

    def __init__(
        self,
        *args: Any,
        target_bounds: tuple[float, float] | None = None,
        entropy_in_target: bool = True,
        annealing_steps: int = 0,
        precision: str = "float32",
        **kwargs: Any,
    ) -> None:
        self.target_bounds = target_bounds
        self.entropy_in_target = entropy_in_target
        self.annealing_steps = annealing_steps
        self.precision = precision
        self.guide: Guide | None = None
        super().__init__(*args, **kwargs)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "guide", "_step"]

    def _setup_model(self) -> None:
        super()._setup_model()
        self._refuse_what_is_not_done()
        dtype = resolve_precision(self.precision, self.device)
        written_out = is_supported(self)
        if self.precision == "bfloat16" and not written_out:
            raise ValueError("precision 'bfloat16': only for linear layers with ReLU between them; choose auto")
        self._step = Update(self, dtype) if written_out else self.update

    def _refuse_what_is_not_done(self) -> None:
        """Refuse what Stable-Baselines3's SAC offers and `update` would silently leave out.

        Raises:
            ValueError: Names it.
        """
        policy: Any = self.policy
        learned = [p for e in (self.actor, self.critic) for p in e.features_extractor.parameters()]
        held = {id(p) for group in self.critic.optimizer.param_groups for p in group["params"]}
        if self.n_steps != 1 or isinstance(self.replay_buffer, NStepReplayBuffer):
            raise ValueError(f"n_steps is {self.n_steps}; the targets here are those of one step")
        if self.target_update_interval != 1:
            raise ValueError("target_update_interval: the target moves with every update here; leave it at 1")
        if self._vec_normalize_env is not None:
            raise ValueError("VecNormalize: updates would learn from what is not normalised; scale in the encoder")
        if any(p.requires_grad and id(p) not in held for p in learned):
            raise ValueError(
                f"{type(policy).__name__}: its encoder is not trained by the critic; use SharedEncoderPolicy"
            )

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        actions, buffer_actions = super()._sample_action(learning_starts, action_noise, n_envs)
        if self.guide is not None:
            guided, where = self.guide(self._last_obs)  # type: ignore[arg-type]
            space: Any = self.action_space
            buffer_actions[where] = guided[where]
            actions[where] = self.policy.unscale_action(guided[where]).clip(space.low, space.high)
        return actions, buffer_actions

    @property
    def discount(self) -> float:
        """The learner's discount γ̄ at this step."""
        return linear_annealing(self.num_timesteps, self.annealing_steps, self.gamma)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Update temperature, critic, actor and target `gradient_steps` times.

        Raises:
            NotFiniteError: A loss is not finite; names it.
        """
        self.policy.set_training_mode(True)
        optimizers = [self.actor.optimizer, self.critic.optimizer]
        if self.ent_coef_optimizer is not None:
            optimizers.append(self.ent_coef_optimizer)
        self._update_learning_rate(optimizers)
        means: dict[str, float] = {}
        for _ in range(gradient_steps):
            batch: Any = self.replay_buffer.sample(batch_size)  # type: ignore[union-attr]
            batch = batch if isinstance(batch, Batch) else Batch(*batch[:5])  # of Stable-Baselines3's own buffer
            for name, value in self._step(batch).items():
                means[name] = means.get(name, 0.0) + value / gradient_steps
        check_finite(**means)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/discount", self.discount)
        for name, mean in means.items():
            self.logger.record_mean(f"train/{name}", mean)

    def update(self, batch: Batch) -> dict[str, float]:
        """Take one gradient step on every network, by autograd; `Update` does the same faster where it can.

        Returns:
            For the log: losses, temperature, mean value and target.
        """
        features, next_features = self._features(batch)
        held = features.detach()
        actions, log_prob = self._sample(held)
        ent_coef = self._update_temperature(log_prob)
        target = self._target(batch, next_features, ent_coef)
        values = torch.cat(self._q_values(self.critic, features, batch.actions), dim=1)
        critic_loss = 0.5 * self.critic.n_critics * F.mse_loss(values, target.expand_as(values))
        self.critic.optimizer.zero_grad()
        critic_loss.backward()
        self.critic.optimizer.step()

        actor_value = torch.cat(self._q_values(self.critic, held, actions), dim=1).amin(dim=1, keepdim=True)
        actor_loss = (ent_coef * log_prob - actor_value).mean()
        self.actor.optimizer.zero_grad()
        actor_loss.backward(inputs=self.actor.optimizer.param_groups[0]["params"])
        self.actor.optimizer.step()
        self._update_target()
        return {
            "critic_loss": critic_loss.item(),
            "actor_loss": actor_loss.item(),
            "ent_coef": ent_coef.item(),
            "entropy": -log_prob.mean().item(),
            "value": values.mean().item(),
            "target": target.mean().item(),
        }

    def _features(self, batch: Batch) -> tuple[Float[Tensor, "batch features"], Float[Tensor, "batch features"]]:
        if batch.features is not None and batch.next_features is not None:
            return batch.features, batch.next_features
        features = self.actor.features_extractor(batch.observations)
        with torch.no_grad():
            return features, self.critic_target.features_extractor(batch.next_observations)

    def _sample(self, features: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        """Return tanh-Gaussian actions (batch, action) and their log-probabilities (batch, 1)."""
        actor: Any = self.actor
        latent = actor.latent_pi(features)
        mean, log_std = actor.mu(latent), actor.log_std(latent).clamp(*LOG_STD_RANGE)
        noise = torch.randn_like(mean)
        actions = torch.tanh(mean + log_std.exp() * noise)
        gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        log_prob = (gaussian - torch.log(1 - actions.square() + 1e-6)).sum(dim=1, keepdim=True)
        return actions, log_prob

    def _update_temperature(self, log_prob: Float[Tensor, "batch 1"]) -> Tensor:
        if self.ent_coef_optimizer is None or self.log_ent_coef is None:
            return self.ent_coef_tensor
        ent_coef = self.log_ent_coef.detach().exp()
        loss = -(self.log_ent_coef * (log_prob.detach() + float(self.target_entropy))).mean()
        self.ent_coef_optimizer.zero_grad()
        loss.backward()
        self.ent_coef_optimizer.step()
        return ent_coef

    @torch.no_grad()
    def _target(self, batch: Batch, next_features: Float[Tensor, "batch features"], ent_coef: Tensor) -> Tensor:
        """R + γ̄ (1 − terminal) [min Q′(s′, a′) − α log π(a′|s′)], within `target_bounds`."""
        next_actions, next_log_prob = self._sample(next_features)
        value = torch.cat(self._q_values(self.critic_target, next_features, next_actions), dim=1)
        value = value.amin(dim=1, keepdim=True)
        if self.entropy_in_target:
            value = value - ent_coef * next_log_prob
        target = batch.rewards + self.discount * (1 - batch.dones) * value
        return target if self.target_bounds is None else target.clamp(*self.target_bounds)

    @staticmethod
    def _q_values(critic: Any, features: Tensor, actions: Tensor) -> list[Tensor]:
        joined = torch.cat([features, actions], dim=1)
        return [network(joined) for network in critic.q_networks]

    @torch.no_grad()
    def _update_target(self) -> None:
        online: list[Tensor] = list(self.critic.parameters())
        target: list[Tensor] = list(self.critic_target.parameters())
        torch._foreach_lerp_(target, online, self.tau)
        self._copy_statistics()

    def _copy_statistics(self) -> None:
        """Give the target what batch normalisation has seen, as Stable-Baselines3 does."""
        for theirs, ours in zip(self.critic_target.buffers(), self.critic.buffers(), strict=True):
            theirs.copy_(ours)
