"""Reward functions of a replay buffer, applied to its rows when they are sampled."""

from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float

from shaping.reward import shaped_reward


class Rows:
    """Sampled rows of a `ShapedReplayBuffer`; their data are read on access.

    Args:
        buffer: A `ShapedReplayBuffer`.
        rows: Indices in the ring, integers (B,).
        envs: Indices of the environments, integers (B,).
    """

    def __init__(self, buffer: Any, rows: np.ndarray, envs: np.ndarray) -> None:
        self.buffer, self.rows, self.envs = buffer, rows, envs

    @property
    def observations(self) -> Float[np.ndarray, "batch ..."]:
        """Observations s (B, …)."""
        return self.buffer.observations[self.rows, self.envs]

    @property
    def actions(self) -> Float[np.ndarray, "batch action"]:
        """Actions in [−1, 1], shape (B, action)."""
        return self.buffer.actions[self.rows, self.envs]

    @property
    def next_observations(self) -> Float[np.ndarray, "batch ..."]:
        """Next observations s′ (B, …)."""
        return self.buffer.next_observations[self.rows, self.envs]

    @property
    def task_rewards(self) -> Float[np.ndarray, " batch"]:
        """Rewards of the task (B,)."""
        return self.buffer.rewards[self.rows, self.envs]

    @property
    def potentials(self) -> Float[np.ndarray, "batch 2"]:
        """Stored Φ(s) and Φ(s′), shape (B, 2)."""
        return self.buffer.potentials[self.rows, self.envs]

    @property
    def features(self) -> Float[np.ndarray, "batch features"] | None:
        """Stored features of s (B, F); None if the buffer stores none."""
        return None if self.buffer.features is None else self.buffer.features[self.rows, self.envs]

    @property
    def terminal(self) -> Bool[np.ndarray, " batch"]:
        """Whether s′ is terminal, which a time limit does not make it (B,)."""
        ends, timeouts = (part[self.rows, self.envs] > 0 for part in (self.buffer.dones, self.buffer.timeouts))
        return ends & ~timeouts

    @property
    def demonstrated(self) -> Bool[np.ndarray, " batch"]:
        """Whether each row is a demonstrated transition (B,)."""
        return np.full(len(self.rows), self.buffer.demonstrated)


class Reward(Protocol):
    """Reward of sampled rows.

    It may have more methods: `learn(rows)` is called before each gradient step with the agent's rows of its batch;
    `collect(observations, actions, dones)` returns the rewards to store in place of the task's; `prepare()` is called
    before the training; `get_state()` and `set_state(state)` make it part of checkpoints.
    """

    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return the rewards (B,) before multiplication by `reward_scale`."""


def task_reward(rows: Rows) -> Float[np.ndarray, " batch"]:
    """Return the rewards of the task."""
    return rows.task_rewards


class PotentialReward:
    """Shaped reward r̄ = r + γΦ(s′) − Φ(s) with stored potentials (paper, eq. reshaped_reward).

    Args:
        gamma: Discount γ of the shaping.
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return the shaped rewards."""
        potentials: Any = rows.potentials
        return shaped_reward(rows.task_rewards, potentials[:, 0], potentials[:, 1], self.gamma)
