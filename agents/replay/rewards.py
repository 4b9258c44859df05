"""Rewards that are formed when transitions are sampled: functions of the rows of a replay buffer."""

from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float

from shaping.reward import shaped_reward


class Rows:
    """Sampled rows of a `ShapedReplayBuffer`, read where a reward asks for them.

    Args:
        buffer: A `ShapedReplayBuffer`.
        rows: Their places in the ring, integers (B,).
        envs: Their environments, integers (B,).
    """

    def __init__(self, buffer: Any, rows: np.ndarray, envs: np.ndarray) -> None:
        self.buffer, self.rows, self.envs = buffer, rows, envs

    @property
    def observations(self) -> Float[np.ndarray, "batch ..."]:
        """Observations s."""
        return self.buffer.observations[self.rows, self.envs]

    @property
    def actions(self) -> Float[np.ndarray, "batch action"]:
        """Actions in [−1, 1]."""
        return self.buffer.actions[self.rows, self.envs]

    @property
    def next_observations(self) -> Float[np.ndarray, "batch ..."]:
        """Observations s′."""
        return self.buffer.next_observations[self.rows, self.envs]

    @property
    def task_rewards(self) -> Float[np.ndarray, " batch"]:
        """Rewards of the task."""
        return self.buffer.rewards[self.rows, self.envs]

    @property
    def potentials(self) -> Float[np.ndarray, "batch 2"]:
        """Stored Φ(s) and Φ(s′)."""
        return self.buffer.potentials[self.rows, self.envs]

    @property
    def demonstrated(self) -> Bool[np.ndarray, " batch"]:
        """Whether a row is demonstrated."""
        return np.full(len(self.rows), self.buffer.demonstrated)


class Reward(Protocol):
    """A reward of sampled rows. One that learns has `get_state` and `set_state` too, and its state is checkpointed."""

    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return the rewards, before `reward_scale`."""


def task_reward(rows: Rows) -> Float[np.ndarray, " batch"]:
    """Return the task's own rewards."""
    return rows.task_rewards


class PotentialReward:
    """r̄ = r + γΦ(s′) − Φ(s) of stored potentials (paper, eq. reshaped_reward).

    Args:
        gamma: γ of the shaping.
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return the shaped rewards."""
        potentials: Any = rows.potentials
        return shaped_reward(rows.task_rewards, potentials[:, 0], potentials[:, 1], self.gamma)
