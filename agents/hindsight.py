"""Hindsight: aim at what was achieved."""

from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer

from agents.replay import Batch
from shaping.goals import GoalSet


class HindsightReplayBuffer(ReplayBuffer):
    """Hindsight experience replay (Andrychowicz et al. 2017, strategy "future") by shifting observations.

    A relabelled row aims at what the same episode achieved at a later step. Reward *and* terminal flag are recomputed
    from the achieved goal of the next state, so that the value is γ to the number of steps.

    Args:
        *args: As for Stable-Baselines3's `ReplayBuffer`.
        goals: Goal set of the observations.
        goal_reward: Reward (B,) of achieved goals (B, 4) for desired goals (B, 4).
        goal_speed: Velocities of relabelled goals are clipped to ± this [m/s], the range of the task's own goals.
        relabelled: Share of relabelled rows (0.8: four hindsight goals for each of the task's).
        seed: Seed of the sampling.
        **kwargs: As for `ReplayBuffer`.
    """

    def __init__(
        self,
        *args: Any,
        goals: GoalSet,
        goal_reward: Callable[[np.ndarray, np.ndarray], np.ndarray],
        goal_speed: float,
        relabelled: float = 0.8,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.goals, self.goal_reward, self.goal_speed, self.relabelled = (
            goals,
            goal_reward,
            goal_speed,
            relabelled,
        )
        self.rng = np.random.default_rng(seed)
        shape = (self.buffer_size, self.n_envs)
        self.achieved = np.zeros((*shape, 4))  # by the next state
        self.desired = np.zeros((*shape, 4))
        self.episode_end = np.zeros(shape, np.int64)  # step count at which the row's episode ends, exclusive
        self.written = np.zeros(shape, np.int64)  # step count at which the row was written
        self.step = 0
        self.episode_start = np.zeros(self.n_envs, np.int64)

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one transition of every environment with the goals that its `info` reports."""
        self.achieved[self.pos] = [info["achieved_goal"] for info in infos]
        self.desired[self.pos] = [info["desired_goal"] for info in infos]
        self.written[self.pos] = self.step
        self.episode_end[self.pos] = self.step + 1
        # Until an episode ends, its rows may be relabelled with what it has achieved so far.
        for env in range(self.n_envs):
            first = max(self.episode_start[env], self.step - self.buffer_size + 1)
            self.episode_end[np.arange(first, self.step + 1) % self.buffer_size, env] = self.step + 1
            if done[env]:
                self.episode_start[env] = self.step + 1
        self.step += 1
        super().add(obs, next_obs, action, reward, done, infos)

    def sample(self, batch_size: int, env: Any = None) -> Batch:  # type: ignore[override]
        """Draw transitions uniformly and relabel `relabelled` of them."""
        rows = self.rng.integers(self.size(), size=batch_size)
        envs = self.rng.integers(self.n_envs, size=batch_size)
        later = self.rng.integers(self.written[rows, envs], self.episode_end[rows, envs]) % self.buffer_size
        relabel = self.rng.random(batch_size) < self.relabelled
        desired = self.desired[rows, envs]
        goal = np.where(relabel[:, None], self.achieved[later, envs], desired)
        goal[relabel, 2:] = goal[relabel, 2:].clip(-self.goal_speed, self.goal_speed)
        offset = (goal - desired)[:, : self.goals.goal_dim].astype(np.float32)
        rewards = self.goal_reward(self.achieved[rows, envs], goal).astype(np.float32)
        return Batch(
            self.to_torch(self.goals.relabel(self.observations[rows, envs], offset)),
            self.to_torch(self.actions[rows, envs]),
            self.to_torch(self.goals.relabel(self.next_observations[rows, envs], offset)),
            self.to_torch(rewards[:, None]),
            self.to_torch(rewards[:, None]),
        )
