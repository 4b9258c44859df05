"""Goal sets in observation space: extract a goal, substitute it, and compute the distance to it.

A goal constrains only the goal-relevant part of an observation (the puck, not the arm), and only as a displacement
from the goal of the environment. An observation holds `puck − goal`, or `puck` and `goal`, so a demonstrated puck
position is substituted as the goal by subtracting its displacement,

    (puck − goal) − (puck_demonstrated − goal) = puck − puck_demonstrated,

and no absolute coordinate is needed (paper, section "Learning From (Partial) Observations").

Every function accepts NumPy arrays and torch tensors, and returns the type that it was given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

ArrayT = TypeVar("ArrayT", np.ndarray, Tensor)


class GoalSet(ABC):
    """Definition of goals for one kind of observation.

    Attributes:
        name: Kind of observation, in messages.
        observation_shape: Shape of one observation; a cloud may also have another number of points.
        goal_dim: Size of a goal.
        counted: Numbers of a goal that count in the distance; the others are velocities.
        scale: Length that is 1 in the distance, for each number that counts or for all.
        reported: Size of the goals that the environment of the prior reports in `info`.
    """

    name: ClassVar[str]
    scale: float | tuple[float, ...] = 1.0

    @property
    @abstractmethod
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""

    @property
    @abstractmethod
    def goal_dim(self) -> int:
        """Size of a goal."""

    @property
    @abstractmethod
    def counted(self) -> slice:
        """Numbers of a goal that count in the distance."""

    @property
    def reported(self) -> int:
        """Size of the goals in `info`: the position, then what else decides about success."""
        return self.goal_dim

    @abstractmethod
    def extract(self, observation: Float[ArrayT, "..."]) -> Float[ArrayT, "*batch goal"]:
        """Return the achieved goal of an observation, relative to the goal of the environment."""

    @abstractmethod
    def shift(self, goal: Float[ArrayT, "*batch goal"]) -> Float[ArrayT, "..."]:
        """Return the array to subtract from an observation to substitute `goal`; 0 where it does not hold the goal."""

    def centred(self, observation: Float[ArrayT, "..."]) -> Float[ArrayT, "..."]:
        """Return the observation with the goal of the environment at the origin, if it holds where that goal lies.

        Achieved goals of different episodes then refer to the same point.
        """
        return observation

    def clip(self, goal: Float[ArrayT, "*batch goal"]) -> Float[ArrayT, "*batch goal"]:
        """Return the goal closest to `goal` in the range that the value estimator was trained on."""
        return goal

    def substitute(
        self, observation: Float[ArrayT, "batch ..."], goal: Float[ArrayT, "goals goal"]
    ) -> Float[ArrayT, "batch goals ..."]:
        """Return every observation with every goal substituted."""
        return rearrange(observation, "batch ... -> batch 1 ...") - self.shift(goal)

    def relabel(
        self, observation: Float[ArrayT, "batch ..."], goal: Float[ArrayT, "batch goal"]
    ) -> Float[ArrayT, "batch ..."]:
        """Return observation i with goal i substituted."""
        return observation - self.shift(goal)

    def distance(
        self, observation: Float[ArrayT, "batch ..."], goal: Float[ArrayT, "goals goal"]
    ) -> Float[ArrayT, "batch goals"]:
        """Return the distance from each observation to each goal; velocities are ignored."""
        return self.length(self.extract(observation)[:, None] - goal)

    def length(self, offset: Float[ArrayT, "*batch goal"]) -> Float[ArrayT, "*batch"]:
        """Return the length of the difference between two goals in units of `scale`; velocities are ignored."""
        part = offset[..., self.counted]
        if isinstance(self.scale, float):
            part = part / self.scale
        else:
            scale = np.asarray(self.scale, dtype=np.float32)
            part = part / (scale if isinstance(part, np.ndarray) else torch.from_numpy(scale))
        return (part * part).sum(-1) ** 0.5
