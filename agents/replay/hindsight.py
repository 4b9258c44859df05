"""Replay buffer with hindsight goals."""

from collections.abc import Callable
from typing import Any

import numpy as np

from agents.replay.buffer import Batch, StoredReplayBuffer, refuse_normalised
from shaping.discount import linear_annealing
from shaping.goals import GoalSet

NEARBY = 0.25  # about the maximum distance between puck and goal in the plane task [m]


class HindsightReplayBuffer(StoredReplayBuffer):
    """Hindsight experience replay (Andrychowicz et al. 2017) by shifting observations.

    The hindsight goal of a relabelled transition is the goal achieved at a later step of the same episode (strategy
    "future"), that of a random row (strategy "random") or a random point around the puck. An episode also ends at a row
    that the next row does not continue. Reward *and* terminal flag are recomputed from the achieved goal of the next
    state, so that the value is γ to the power of the number of steps.

    Goals from the future are biased if the observation hides part of the state: a cloud contains no velocity, but a
    puck that reaches the goal soon was mostly moving towards it, and the value learns to rely on that. Points drawn
    independently of the future avoid this bias, and clouds need them.

    Args:
        *args: As for Stable-Baselines3's `ReplayBuffer`.
        goals: Goal set of the observations.
        compute_reward: Function from achieved and desired goals, shape (B, `goals.reported`) each, to rewards (B,).
        goal_speed: Bound to which the velocities of hindsight goals are clipped per axis, that of the task's goals
            [m/s].
        relabelled: Share of relabelled transitions (0.8: four hindsight goals for each goal of the task).
        nearby: Share of the hindsight goals that are points around the puck, at a distance of at most `NEARBY`.
        nearby_steps: Environment steps over which `nearby` rises linearly from 0, because a policy is found sooner with
            goals from the future.
        elsewhere: Share of the hindsight goals that were achieved in a random row; those `nearby` come first.
        seed: Seed of the sampling.
        **kwargs: As for `ReplayBuffer`.
    """

    def __init__(
        self,
        *args: Any,
        goals: GoalSet,
        compute_reward: Callable[[np.ndarray, np.ndarray, Any], np.ndarray],
        goal_speed: float,
        relabelled: float = 0.8,
        nearby: float = 0.0,
        nearby_steps: int = 0,
        elsewhere: float = 0.0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.goals, self.compute_reward, self.goal_speed = goals, compute_reward, goal_speed
        self.axes = len(range(*goals.counted.indices(goals.goal_dim)))  # the position comes first, then velocities
        self.relabelled, self.nearby, self.nearby_steps = relabelled, nearby, nearby_steps
        self.elsewhere = elsewhere
        self.rng = np.random.default_rng(seed)
        shape = (self.buffer_size, self.n_envs)
        self.achieved = np.zeros((*shape, goals.reported))  # goal achieved in the next state
        self.desired = np.zeros((*shape, goals.reported))
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
        self.episode_start = np.where(self._continues(self.pos - 1, obs), self.episode_start, self.step)
        # Rows of an unfinished episode may be relabelled with the goals achieved so far.
        for env, start in enumerate(self.episode_start):
            rows = self.pos - np.arange(min(self.step + 1 - start, self.buffer_size))
            self.episode_end[rows % self.buffer_size, env] = self.step + 1
        self.step += 1
        super().add(obs, next_obs, action, reward, done, infos)

    def sample(self, batch_size: int, env: Any = None) -> Batch:  # type: ignore[override]
        """Draw transitions uniformly and relabel a share of them with hindsight goals.

        Raises:
            ValueError: The environment of the algorithm is normalised by `VecNormalize`.
        """
        refuse_normalised(env)
        rows = self.rng.integers(self.size(), size=batch_size)
        envs = self.rng.integers(self.n_envs, size=batch_size)
        ahead = self.rng.integers(self.episode_end[rows, envs] - self.written[rows, envs])
        later = (rows + ahead) % self.buffer_size
        draw = self.rng.random(batch_size)
        if self.elsewhere:
            far = draw >= self.relabelled * (1 - self.elsewhere)
            later = np.where(far, self.rng.integers(self.size(), size=batch_size), later)
        relabel = draw < self.relabelled
        near = draw < self.relabelled * linear_annealing(self.step, self.nearby_steps, self.nearby)
        desired = self.desired[rows, envs]
        goal = np.where(relabel[:, None], self.achieved[later, envs], desired)
        goal[relabel, self.axes :] = goal[relabel, self.axes :].clip(-self.goal_speed, self.goal_speed)
        observations = self.observations[rows, envs]
        puck = desired[near, : self.axes] + self.goals.extract(observations[near])[:, : self.axes]
        goal[near] = np.concatenate([puck + self._around(len(puck)), self._velocities(len(puck))], axis=1)
        offset = (goal - desired)[:, : self.goals.goal_dim].astype(np.float32)
        rewards = self.compute_reward(self.achieved[rows, envs], goal, {}).astype(np.float32)
        return Batch(
            self.to_torch(self.goals.relabel(observations, offset)),
            self.to_torch(self.actions[rows, envs]),
            self.to_torch(self.goals.relabel(self.next_observations[rows, envs], offset)),
            self.to_torch(rewards[:, None]),
            self.to_torch(rewards[:, None]),
        )

    def fill(self, rows: dict[str, np.ndarray], position: int) -> None:
        """Restore the rows returned by `filled`; the next row is written at `position`."""
        super().fill(rows, position)
        count = self.size()
        written, ends = self.written[:count], self.episode_end[:count]
        self.step = int(written.max()) + 1
        self.episode_start = np.where(ends == self.step, written, self.step).min(axis=0)
        # A full ring that is restored to a larger buffer no longer wraps: its oldest rows cannot reach row 0.
        if not self.full:
            ends[position:] = np.minimum(ends[position:], written[-1] + 1)

    def _stored(self) -> list[str]:
        return [*super()._stored(), "achieved", "desired", "episode_end", "written"]

    def _around(self, count: int) -> np.ndarray:
        """Draw displacements (count, axes) with lengths uniform in [0, `NEARBY`]."""
        if self.axes == 2:  # drawn as before there were other dimensions, so that pre-trainings repeat
            angle, length = self.rng.uniform(0, 2 * np.pi, count), self.rng.uniform(0, NEARBY, count)
            return np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1)
        direction = self.rng.normal(size=(count, self.axes))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return self.rng.uniform(0, NEARBY, (count, 1)) * direction

    def _velocities(self, count: int) -> np.ndarray:
        return self.rng.uniform(-self.goal_speed, self.goal_speed, (count, self.goals.reported - self.axes))
