"""Behavioural cloning: the likelihood of demonstrated actions, and an agent that learns from nothing else."""

from typing import Any

import torch
from jaxtyping import Float
from stable_baselines3.common.type_aliases import RolloutReturn
from torch import Tensor

from agents.finite import check_finite
from agents.sac import SAC
from agents.sac.policy import Features

EDGE = 1 - 1e-6  # actions are clamped to ±EDGE, where a tanh-Gaussian has a density


def log_likelihood(
    mean: Float[Tensor, "batch action"], log_std: Float[Tensor, "batch action"], actions: Float[Tensor, "batch action"]
) -> Float[Tensor, " batch"]:
    """Return log π(a) of a tanh-Gaussian, given mean and logarithmic deviation before tanh."""
    actions = actions.clamp(-EDGE, EDGE)
    gaussian = torch.distributions.Normal(mean, log_std.exp())
    return (gaussian.log_prob(actions.atanh()) - torch.log1p(-actions.square())).sum(dim=1)


def clone(actor: Any, observations: Any, actions: Tensor) -> float:
    """Take a gradient step of the actor's optimiser on −log π(a|s), and return this loss.

    Args:
        actor: Actor of Stable-Baselines3's SAC.
        observations: Demonstrated observations, or their `Features`.
        actions: Demonstrated actions (B, A).
    """
    mean, log_std, _ = actor.get_action_dist_params(observations)
    loss = -log_likelihood(mean, log_std, actions).mean()
    actor.optimizer.zero_grad()
    loss.backward()
    actor.optimizer.step()
    actor.optimizer.zero_grad()  # the gradients are not those of SAC's loss
    return loss.item()


def demonstrated_batch(demonstrations: Any, batch_size: int) -> tuple[Any, Tensor]:
    """Draw demonstrated observations, or their `Features` if these are stored, and their actions (B, A)."""
    batch = demonstrations.sample(batch_size)
    return batch.observations if batch.features is None else Features(batch.features), batch.actions


class BehaviouralCloning(SAC):
    """Agent that learns from demonstrated actions alone; a "time step" is a gradient step, and no environment is used.

    Args:
        *args: As for `SAC`.
        **kwargs: As for `SAC`; the replay buffer must hold demonstrations (`set_demonstrations`).
    """

    def _setup_model(self) -> None:
        super()._setup_model()
        trained = [parameter for parameter in self.actor.parameters() if parameter.requires_grad]
        settings: Any = {"lr": self.lr_schedule(1), **self.policy.optimizer_kwargs}
        self.actor.optimizer = self.policy.optimizer_class(trained, **settings)

    def collect_rollouts(self, env: Any, callback: Any, train_freq: Any, *args: Any, **kwargs: Any) -> RolloutReturn:
        """Count the gradient steps that follow; nothing is collected."""
        callback.on_rollout_start()
        steps = min(train_freq.frequency * env.num_envs, self._total_timesteps - self.num_timesteps)
        self.num_timesteps += steps
        callback.update_locals(locals())
        going_on = callback.on_step()
        callback.on_rollout_end()
        return RolloutReturn(steps, 0, going_on)

    def _train(self, gradient_steps: int, batch_size: int) -> None:
        self._update_learning_rate(self.actor.optimizer)
        self.policy.set_training_mode(True)
        total, average = 0.0, self._averaging()
        for _ in range(gradient_steps):
            drawn = demonstrated_batch(self.replay_buffer.demonstrations, batch_size)  # type: ignore[union-attr]
            total += clone(self.actor, *drawn)
            if average is not None:
                average.step()
        check_finite(cloning_loss=total)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record_mean("train/cloning_loss", total / gradient_steps)
