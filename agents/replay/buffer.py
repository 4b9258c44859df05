"""Transitions, and a replay buffer that stores every observation once."""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from jaxtyping import Float
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from agents.replay.next_observations import Following


class Batch(NamedTuple):
    """Transitions, as Stable-Baselines3's `ReplayBufferSamples`, for any of its algorithms.

    `discounts` replace γ where a row is of several steps; `features` replace the observations where a frozen encoder's
    output is stored.
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
    """Refuse an environment by which Stable-Baselines3 would normalise what is sampled.

    Raises:
        ValueError: There is one.
    """
    if env is not None:
        raise ValueError("VecNormalize: updates would learn from what is not normalised; scale in the encoder")


class StoredReplayBuffer(ReplayBuffer):
    """Replay buffer that stores an observation once, and whose filled rows can be taken out and put back.

    Args:
        buffer_size: As for Stable-Baselines3's `ReplayBuffer`.
        observation_space: As for `ReplayBuffer`; no dictionary.
        *args: As for `ReplayBuffer`.
        optimize_memory_usage: Refused: Stable-Baselines3's own way to store an observation once.
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
        # so set, no array of next observations is made
        kwargs |= {"optimize_memory_usage": True, "handle_timeout_termination": False}
        super().__init__(buffer_size, observation_space, *args, **kwargs)
        self.optimize_memory_usage, self.handle_timeout_termination = False, handle_timeout_termination
        self.next_observations = Following(self.observations)

    def filled(self) -> dict[str, np.ndarray]:
        """The stored rows, by name; of what follows them, what is not the next row, and for which rows (`_apart`)."""
        stored = {name: getattr(self, name)[: self.size()] for name in self._stored()}
        for name in self._following():
            stored[f"{name}_apart"], stored[name] = getattr(self, name).filled(self.size())
        return stored

    def fill(self, rows: dict[str, np.ndarray], position: int) -> None:
        """Put back the rows that `filled` returned; `position` is where the next one goes.

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
        # a full ring in a larger buffer is not full any more
        self.pos = position % self.buffer_size if self.full else count

    def row(self, index: int) -> dict[str, np.ndarray]:
        """Return copies of what is stored of one step of every environment, by name."""
        stored = {name: getattr(self, name)[index].copy() for name in self._stored()}
        return stored | {name: getattr(self, name).after(index).copy() for name in self._following()}

    def put(self, row: dict[str, np.ndarray]) -> None:
        """Store what another buffer's `row` returned."""
        for name in (*self._stored(), *self._following()):
            getattr(self, name)[self.pos] = row[name]
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full, self.pos = True, 0

    def _continues(self, before: int, obs: np.ndarray) -> np.ndarray:
        """Where observations (envs, …) go on from what follows a row; nowhere if there is none."""
        after = self.next_observations.after(before).reshape(self.n_envs, -1)
        same = np.asarray(obs, after.dtype).reshape(self.n_envs, -1) == after
        return same.all(axis=1) & (self.dones[before] == 0) & bool(self.size())

    def _stored(self) -> list[str]:
        return ["observations", "actions", "rewards", "dones", "timeouts"]

    def _following(self) -> list[str]:
        return ["next_observations"]
