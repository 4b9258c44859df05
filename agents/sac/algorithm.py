"""Soft actor-critic with clipped targets and annealed discount as a Stable-Baselines3 algorithm."""

import copy
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.type_aliases import GymEnv, TrainFreq
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from stable_baselines3.sac.policies import Actor

from agents.collecting.collector import CollectedSteps
from agents.finite import check_finite
from agents.replay.buffer import Batch, StoredReplayBuffer, refuse_normalised
from agents.sac.averaging import MovingAverage
from agents.sac.device import resolve_precision
from agents.sac.fast.update import Networks, Update, is_supported
from agents.sac.gradient_step import STEP, GradientStep
from agents.sac.guide import Guide
from agents.sac.state import restore_state, take_state
from shaping.discount import linear_annealing
from shaping.visibility import puck_visible


class SAC(GradientStep):
    """SAC (Haarnoja et al. 2018) with clipped targets, annealed discount, guided steps and an averaged actor.

    `load` is Stable-Baselines3's method: it unpickles, so an untrusted file can execute code. Run directories and
    checkpoints do not use it; `agents.runs.load_policy` reads their policy as data. A loaded agent has its potential,
    but no guide and no transitions, demonstrated ones included.

    Args:
        *args: As for Stable-Baselines3's SAC.
        target_bounds: Range to which the critic's targets are clipped; None disables clipping (paper: [−2, 1]; prior:
            [0, 1]).
        backup_entropy: Whether the critic's target contains the entropy bonus. Without it, the value is that of the
            reward alone; the actor's loss always contains the bonus.
        cloning: Weight of |a − a_stored|² in the actor's loss, which keeps the actions near those of the replay buffer
            (Fujimoto and Gu 2021, "A minimalist approach to offline reinforcement learning").
        annealing_steps: Environment steps over which the discount rises linearly from 0 to `gamma` (paper, sec. 4.4).
        actor_tau: Rate per gradient step of the moving average `averaged_actor`; 1 uses the actor itself.
        precision: Number format of the products between hidden layers; "auto" selects bfloat16 if the device has
            instructions for it. Parameters, their gradients, values and sums stay in float32.
        **kwargs: As for Stable-Baselines3's SAC.

    Raises:
        ValueError: The device or the gradient step of these networks does not support the precision, or a setting of
            Stable-Baselines3 is not supported by this class.
    """

    def __init__(
        self,
        *args: Any,
        target_bounds: tuple[float, float] | None = None,
        backup_entropy: bool = True,
        cloning: float = 0.0,
        annealing_steps: int = 0,
        actor_tau: float = 1.0,
        precision: str = "float32",
        **kwargs: Any,
    ) -> None:
        self.target_bounds = target_bounds
        self.backup_entropy = backup_entropy
        self.cloning = cloning
        self.annealing_steps = annealing_steps
        self.actor_tau = actor_tau
        self.average: Actor | None = None
        self.precision = precision
        self.guide: Guide | None = None
        self.collected: CollectedSteps | None = None
        self._last_visible = np.ones(0, bool)  # whether the puck is visible in `_last_obs` (envs,)
        super().__init__(*args, **kwargs)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "guide", "collected", "average", "_networks", "_step"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, *(["average"] if self.average is not None else [])], tensors

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.ent_coef_optimizer is not None:  # the same Adam as for actor and critics, which rounds alike
            for group in self.ent_coef_optimizer.param_groups:
                group["fused"] = self.policy.optimizer_kwargs.get("fused")
        refuse_normalised(self._vec_normalize_env)
        if isinstance(self.observation_space, spaces.Dict) and type(self.actor.features_extractor) is FlattenExtractor:
            raise ValueError("observations are a dictionary, which FlattenExtractor cannot take; use MultiInputPolicy")
        if self.n_steps != 1 and isinstance(self.replay_buffer, StoredReplayBuffer):
            raise ValueError(
                f"n_steps is {self.n_steps}; give it to {type(self.replay_buffer).__name__} by replay_buffer_kwargs"
            )
        if self.annealing_steps and isinstance(self.replay_buffer, NStepReplayBuffer):
            raise ValueError("annealing_steps: the replay buffer of n_steps discounts by gamma itself; leave one out")
        if self.actor_tau < 1.0:
            self.average = copy.deepcopy(self.actor).requires_grad_(False)
            del self.average.optimizer
        self._networks: Networks | None = None
        self._choose_step()

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Set the environment, as for Stable-Baselines3's SAC.

        Raises:
            ValueError: The environment is normalised by `VecNormalize`.
        """
        refuse_normalised(unwrap_vec_normalize(env))  # type: ignore[arg-type]
        super().set_env(env, force_reset)

    def _choose_step(self) -> Callable[[Batch], dict[str, float]]:
        """Return the gradient step: `Update` if it supports the current networks, else `update` by autograd.

        Raises:
            ValueError: The precision is "bfloat16", which `update` does not support.
        """
        networks = Networks(self)
        if networks != self._networks:
            self.policy.zero_grad()  # gradients that the next step does not set would be applied again
            dtype = resolve_precision(self.precision, self.device)
            own = all(getattr(getattr(self, name), "__func__", None) is getattr(SAC, name) for name in STEP)
            written_out = own and is_supported(self)
            if self.precision == "bfloat16" and not written_out:
                raise ValueError(
                    "precision 'bfloat16': only for linear layers with ReLU between them, all of them trained, "
                    "without hooks, and for this class's own gradient step; choose auto"
                )
            self._networks, self._step = networks, Update(self, dtype) if written_out else self.update
        return self._step

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.collected is not None:
            step = self.collected.next_step()
            if step.guided is not None:
                self.logger.record_mean("rollout/guided_share", step.guided)
            return step.actions, step.row["actions"]
        actions, buffer_actions = super()._sample_action(learning_starts, action_noise, n_envs)
        if self.guide is not None:
            guided, where = self.guide(self._last_obs, self._last_visible, self.num_timesteps)  # type: ignore[arg-type]
            space: Any = self.action_space
            buffer_actions[where] = guided[where]
            actions[where] = self.policy.unscale_action(guided[where]).clip(space.low, space.high)
            self.logger.record_mean("rollout/guided_share", float(where.mean()))
        return actions, buffer_actions

    def collect_rollouts(self, env: VecEnv, callback: Any, train_freq: TrainFreq, *args: Any, **kwargs: Any) -> Any:
        """Collect a block of steps, or the remaining steps of the training; from `collected` if it is set."""
        if self.collected is None:
            return super().collect_rollouts(env, callback, train_freq, *args, **kwargs)
        left = -(-(self._total_timesteps - self.num_timesteps) // env.num_envs)
        train_freq = TrainFreq(min(train_freq.frequency, left), train_freq.unit)
        return super().collect_rollouts(self.collected, callback, train_freq, *args, **kwargs)

    def dump_logs(self) -> None:
        """Write the log, including the shares of the time."""
        if self.collected is not None:
            for name, share in self.collected.shares().items():
                self.logger.record(f"time/{name}", share)
        super().dump_logs()

    def _setup_learn(
        self, total_timesteps: int, callback: Any = None, reset_num_timesteps: bool = True, *args: Any
    ) -> tuple[int, Any]:
        resets = reset_num_timesteps or self._last_obs is None
        result = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args)
        if resets:
            self._last_visible = puck_visible(self._reset_infos())
        return result

    def _store_transition(
        self, replay_buffer: Any, buffer_action: Any, new_obs: Any, reward: Any, dones: Any, infos: list[dict[str, Any]]
    ) -> None:
        if self.collected is not None:
            with self.collected.clock("storing"):
                replay_buffer.put(self.collected.row)
            self._last_obs = new_obs
            return
        frames: Any = zip(infos, self._last_episode_starts, self._last_visible, strict=True)  # type: ignore[arg-type]
        for info, starts, visible in frames:
            if starts:  # tells the replay buffer whether the puck is visible in the first frame
                info.setdefault("reset_info", {"puck_visible": bool(visible)})
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self._last_episode_starts = dones
        self._last_visible = np.where(dones, puck_visible(self._reset_infos()), puck_visible(infos))

    def _reset_infos(self) -> list[dict[str, Any]]:
        """Return the `info` of the last reset of each environment."""
        return self.env.unwrapped.reset_infos  # type: ignore[union-attr]  # a `VecEnvWrapper` does not have its own

    @property
    def discount(self) -> float:
        """Annealed discount γ̄ at the current step."""
        return linear_annealing(self.num_timesteps, self.annealing_steps, self.gamma)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Take `gradient_steps` gradient steps on temperature, critic and actor, and update the target network.

        Raises:
            NotFiniteError: A loss is not finite; the message names it.
        """
        with nullcontext() if self.collected is None else self.collected.clock("updating"):
            self._train(gradient_steps, batch_size)

    def _train(self, gradient_steps: int, batch_size: int) -> None:
        self.policy.set_training_mode(True)
        optimizers = [self.actor.optimizer, self.critic.optimizer]
        if self.ent_coef_optimizer is not None:
            optimizers.append(self.ent_coef_optimizer)
        self._update_learning_rate(optimizers)
        take_step = self._choose_step()
        target, average = MovingAverage(self.critic_target, self.critic, self.tau), self._averaging()
        means: dict[str, float] = {}
        for part in (self.replay_buffer, getattr(self.replay_buffer, "demonstrations", None)):
            if part is not None:
                part.discount = self.discount  # type: ignore[union-attr]
        for index in range(gradient_steps):
            batch: Any = self.replay_buffer.sample(batch_size)  # type: ignore[union-attr]
            batch = batch if isinstance(batch, Batch) else Batch(*batch)  # from buffers of Stable-Baselines3
            for name, value in take_step(batch).items():
                means[name] = means.get(name, 0.0) + value / gradient_steps
            if index % self.target_update_interval == 0:  # counted per call, as in Stable-Baselines3
                target.step()
            if average is not None:
                average.step()
        check_finite(**means)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/discount", self.discount)
        for name, mean in means.items():
            self.logger.record_mean(f"train/{name}", mean)

    def _averaging(self) -> MovingAverage | None:
        """Return the average of the actor's weights, which starts at the first gradient step, if there is one."""
        if self.average is None:
            return None
        if self._n_updates == 0:
            self.average.load_state_dict(self.actor.state_dict())
        return MovingAverage(self.average, self.actor, self.actor_tau)

    @property
    def averaged_actor(self) -> torch.nn.Module:
        """Actor with the exponential moving average of its weights, which varies less between gradient steps.

        Polyak & Juditsky 1992, "Acceleration of stochastic approximation by averaging".
        """
        return self.actor if self.average is None or self._n_updates == 0 else self.average

    def buffers(self) -> dict[str, Any]:
        """Return the replay buffer and, if it exists, the buffer of demonstrated transitions by name."""
        named = {"buffer": self.replay_buffer, "demonstrations": getattr(self.replay_buffer, "demonstrations", None)}
        return {name: part for name, part in named.items() if part is not None}

    def get_state(self) -> dict[str, Any]:
        """Return everything that the next step depends on except the rows of the buffers, as tensors and plain data."""
        return take_state(self)

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state` of an agent with the same configuration, environments included.

        Raises:
            ValueError: The potential differs from that of the state.
        """
        restore_state(self, state)
