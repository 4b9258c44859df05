"""Replay buffer that stores every observation once, and batches of transitions."""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from jaxtyping import Float
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from agents.replay.next_observations import Following


class Batch(NamedTuple):
    """Batch of transitions, compatible with Stable-Baselines3's `ReplayBufferSamples` and its algorithms.

    If given, `discounts` replace γ for n-step returns, and `features`, the stored output of a frozen encoder, replace
    the observations.
    """

    observations: Float[Tensor, "batch ..."]
    actions: Float[Tensor, "batch action"]
    next_observations: Float[Tensor, "batch ..."]
    dones: Float[Tensor, "batch 1"]
    rewards: Float[Tensor, "batch 1"]
    discounts: Float[Tensor, "batch 1"] | None = None
    features: Float[Tensor, "batch features"] | None = None
    next_features: Float[Tensor, "batch features"] | None = None


def refuse_normalised(env: VecNormalize | None) -> None:
    """Reject an environment with which Stable-Baselines3 would normalise the samples.

    Raises:
        ValueError: `env` is not None.
    """
    if env is not None:
        raise ValueError("VecNormalize: updates would learn from what is not normalised; scale in the encoder")


class StoredReplayBuffer(ReplayBuffer):
    """Replay buffer that stores every observation once, and whose rows can be read out and restored.

    Args:
        buffer_size: As for Stable-Baselines3's `ReplayBuffer`.
        observation_space: As for `ReplayBuffer`, but not a dictionary.
        *args: As for `ReplayBuffer`.
        optimize_memory_usage: Not supported; this is Stable-Baselines3's method of storing observations once.
        handle_timeout_termination: As for `ReplayBuffer`.
        **kwargs: As for `ReplayBuffer`.

    Raises:
        ValueError: `optimize_memory_usage` is set, or observations are dictionaries.
    """

    next_observations: Following  # type: ignore[assignment]
    rng: np.random.Generator
    demonstrations: "StoredReplayBuffer | None" = None

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        *args: Any,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        **kwargs: Any,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage shows the next episode's start as what follows a time limit; leave it out"
            )
        if isinstance(observation_space, spaces.Dict):
            raise ValueError(
                f"{type(self).__name__}: observations are a dictionary; wrap the environment in FlattenObservation"
            )
        # With these values, Stable-Baselines3 allocates no array of next observations.
        kwargs |= {"optimize_memory_usage": True, "handle_timeout_termination": False}
        super().__init__(buffer_size, observation_space, *args, **kwargs)
        self.optimize_memory_usage, self.handle_timeout_termination = False, handle_timeout_termination
        self.next_observations = Following(self.observations)

    def filled(self) -> dict[str, np.ndarray]:
        """Return the stored rows by name.

        Next observations (and features) are returned only where they differ from the next row; NAME_apart marks these
        rows.
        """
        stored = {name: getattr(self, name)[: self.size()] for name in self._stored()}
        for name in self._following():
            stored[f"{name}_apart"], stored[name] = getattr(self, name).filled(self.size())
        return stored

    def fill(self, rows: dict[str, np.ndarray], position: int) -> None:
        """Restore the rows returned by `filled`; the next row is written at `position`.

        Raises:
            ValueError: The rows do not fit this buffer.
        """
        count = len(rows["rewards"])
        for name in self._stored():
            target = getattr(self, name)
            if name not in rows or rows[name].shape != (count, *target.shape[1:]) or count > self.buffer_size:
                raise ValueError(f"stored transitions do not fit the replay buffer: {name}")
            target[:count] = rows[name]
        for name in self._following():
            if name not in rows or f"{name}_apart" not in rows:
                raise ValueError(f"stored transitions do not fit the replay buffer: {name}")
            getattr(self, name).fill(rows[f"{name}_apart"], rows[name], count)
        self.full = count == self.buffer_size
        # The rows of a full ring may be restored to a larger buffer, which is then not full.
        self.pos = position % self.buffer_size if self.full else count

    def row(self, index: int) -> dict[str, np.ndarray]:
        """Return a copy of one row, which holds one step of every environment, by name."""
        stored = {name: getattr(self, name)[index].copy() for name in self._stored()}
        return stored | {name: getattr(self, name).after(index).copy() for name in self._following()}

    def put(self, row: dict[str, np.ndarray]) -> None:
        """Store a row returned by `row` of another buffer."""
        for name in (*self._stored(), *self._following()):
            getattr(self, name)[self.pos] = row[name]
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full, self.pos = True, 0

    def _continues(self, before: int, obs: np.ndarray) -> np.ndarray:
        """Return where `obs` (envs, …) continues the episode of row `before`; nowhere if the buffer is empty."""
        after = self.next_observations.after(before).reshape(self.n_envs, -1)
        same = np.asarray(obs, after.dtype).reshape(self.n_envs, -1) == after
        return same.all(axis=1) & (self.dones[before] == 0) & bool(self.size())

    def _stored(self) -> list[str]:
        return ["observations", "actions", "rewards", "dones", "timeouts"]

    def _following(self) -> list[str]:
        return ["next_observations"]
