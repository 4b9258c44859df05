"""Gradient step of SAC by autograd: the reference for `Update`, and its replacement for other networks."""

from typing import Any

import torch
from jaxtyping import Float
from stable_baselines3 import SAC as StockSAC
from torch import Tensor
from torch.nn import functional as F

from agents.replay.buffer import Batch
from agents.sac.policy import Features, SharedEncoderPolicy

STEP = ("update", "_inputs", "_update_temperature", "_target")  # methods of the gradient step by autograd


class GradientStep(StockSAC):
    """SAC's gradient step with clipped targets, an encoder that may be shared, and stored features."""

    target_bounds: tuple[float, float] | None
    backup_entropy: bool
    cloning: float
    discount: Any

    def update(self, batch: Batch) -> dict[str, float]:
        """Take a gradient step on temperature, critic and actor by autograd; `Update` is faster where it is supported.

        Returns:
            Losses, temperature, entropy, mean value, mean target and share of clipped targets, for the log.
        """
        if self.use_sde:
            self.actor.reset_noise()
        observations, held, following = self._inputs(batch)
        actions, log_prob = self.actor.action_log_prob(held)
        log_prob = log_prob.reshape(-1, 1)
        ent_coef = self._update_temperature(log_prob)
        target, clipped = self.clip_target(self._target(batch, following, ent_coef))
        values = torch.cat(self.critic(observations, batch.actions), dim=1)
        critic_loss = 0.5 * values.shape[1] * F.mse_loss(values, target.expand_as(values))
        self.critic.optimizer.zero_grad()
        critic_loss.backward()
        self.critic.optimizer.step()

        actor_value = torch.cat(self.critic(held, actions), dim=1).min(dim=1, keepdim=True).values
        apart = (actions - batch.actions).square().sum(dim=1, keepdim=True)
        actor_loss = (ent_coef * log_prob - actor_value + self.cloning * apart).mean()
        self.actor.optimizer.zero_grad()
        actor_loss.backward()
        self.actor.optimizer.step()
        return {
            "critic_loss": critic_loss.item(),
            "actor_loss": actor_loss.item(),
            "ent_coef": ent_coef.item(),
            "entropy": -log_prob.mean().item(),
            "value": values.mean().item(),
            "target": target.mean().item(),
            "clipped_targets": clipped.item(),
        }

    def clip_target(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the targets clipped to `target_bounds`, and the share of targets outside."""
        if self.target_bounds is None:
            return target, target.new_zeros(())
        clipped = target.clamp(*self.target_bounds)
        return clipped, (clipped != target).float().mean()

    def _inputs(self, batch: Batch) -> tuple[Any, Any, Any]:
        """Return the inputs of the networks: s for the critic's loss, s for the actor's loss, and s′.

        A shared encoder is evaluated once and trained by the critic's loss only.
        """
        if not isinstance(self.policy, SharedEncoderPolicy):
            return batch.observations, batch.observations, batch.next_observations
        features, next_features = batch.features, batch.next_features
        if features is None or next_features is None:
            features = self.actor.extract_features(batch.observations, self.actor.features_extractor)
            target: Any = self.critic_target
            with torch.no_grad():
                next_features = target.extract_features(batch.next_observations, target.features_extractor)
        return Features(features), Features(features.detach()), Features(next_features)

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
    def _target(self, batch: Batch, following: Any, ent_coef: Tensor) -> Float[Tensor, "batch 1"]:
        """Return R + γ̄ (1 − terminal) [min Q′(s′, a′) − α log π(a′|s′)], before `clip_target`."""
        actions, log_prob = self.actor.action_log_prob(following)
        value = torch.cat(self.critic_target(following, actions), dim=1).amin(dim=1, keepdim=True)
        if self.backup_entropy:
            value = value - ent_coef * log_prob.reshape(-1, 1)
        discount = self.discount if batch.discounts is None else batch.discounts
        return batch.rewards + discount * (1 - batch.dones) * value
