"""Goal sets in observation space: extract a goal, substitute it, and compute the distance to it.

A goal constrains only the goal-relevant part of an observation (the puck, not the arm), and only as a displacement.
Observations hold `puck − goal`, so a demonstrated puck position is substituted as the goal by subtracting its
displacement,

    (puck − goal) − (puck_demonstrated − goal) = puck − puck_demonstrated,

and no absolute coordinate is needed (paper, section "Learning From (Partial) Observations").

Every function accepts NumPy arrays and torch tensors, and returns the type that it was given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
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
        name: Kind of observation, as in `make_goals`.
        observation_shape: Shape of one observation; a cloud may also have another number of points.
        goal_dim: Size of a goal; its first two numbers are a position in the plane [m].
        columns: Columns of an observation that depend on the goal.
    """

    name: ClassVar[str]
    observation_shape: ClassVar[tuple[int, ...]]
    goal_dim: ClassVar[int]
    columns: ClassVar[slice]

    @abstractmethod
    def extract(self, observation: Float[ArrayT, "..."]) -> Float[ArrayT, "*batch goal"]:
        """Return the achieved goal of an observation: the puck relative to the goal of the environment."""

    @abstractmethod
    def shift(self, goal: Float[ArrayT, "*batch goal"]) -> Float[ArrayT, "..."]:
        """Return the array to subtract from an observation to substitute `goal`; it is zero outside `columns`."""

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

    def displacement(
        self, observation: Float[ArrayT, "batch ..."], goal: Float[ArrayT, "goals goal"]
    ) -> Float[ArrayT, "batch goals"]:
        """Return the distance from the puck of each observation to each goal [m]; velocities are ignored."""
        offset = self.extract(observation)[:, None, :2] - goal[:, :2]
        x, y = offset[..., 0], offset[..., 1]
        return (x * x + y * y) ** 0.5


@dataclass(frozen=True)
class StateGoals(GoalSet):
    """Goals of the state `[s_PE, v_PE, s_PG, v_PG]`: `[s_PG, v_PG]` of the puck [m, m/s].

    Attributes:
        goal_speed: Largest goal velocity per axis that the estimator was trained on [m/s]. A demonstrated puck may be
            faster; `clip` limits its velocity to this range.
    """

    goal_speed: float = 0.05

    name: ClassVar[str] = "state"
    observation_shape: ClassVar[tuple[int, ...]] = (8,)
    goal_dim: ClassVar[int] = 4
    columns: ClassVar[slice] = slice(4, 8)

    def extract(self, observation: Float[ArrayT, "*batch 8"]) -> Float[ArrayT, "*batch 4"]:
        """Return `[s_PG, v_PG]`."""
        return observation[..., self.columns]

    def shift(self, goal: Float[ArrayT, "*batch 4"]) -> Float[ArrayT, "*batch 8"]:
        """Return zeros for the columns of the arm, followed by the goal."""
        return _pad_left(goal, 4)

    def clip(self, goal: Float[ArrayT, "*batch 4"]) -> Float[ArrayT, "*batch 4"]:
        """Return the goal with its velocity clipped to ±`goal_speed`."""
        clipped = goal + 0  # a copy, in NumPy and in torch
        clipped[..., 2:] = goal[..., 2:].clip(-self.goal_speed, self.goal_speed)
        return clipped


@dataclass(frozen=True)
class CloudGoals(GoalSet):
    """Goals of the cloud `[p_i − E, p_i − G]` (xy) [m]: the centroid of the points relative to the goal.

    The centroid does not depend on the order of the points, and the same shift is subtracted from every point.
    """

    name: ClassVar[str] = "pointcloud"
    observation_shape: ClassVar[tuple[int, ...]] = (20, 4)
    goal_dim: ClassVar[int] = 2
    columns: ClassVar[slice] = slice(2, 4)

    def extract(self, observation: Float[ArrayT, "*batch points 4"]) -> Float[ArrayT, "*batch 2"]:
        """Return the centroid of `p_i − G`."""
        return observation[..., self.columns].mean(-2)

    def shift(self, goal: Float[ArrayT, "*batch 2"]) -> Float[ArrayT, "*batch 1 4"]:
        """Return one row for all points: zeros for the columns relative to E, followed by the goal."""
        return _pad_left(goal[..., None, :], 2)


def make_goals(observation: str, goal_speed: float = 0.05) -> GoalSet:
    """Return the goal set of a kind of observation.

    Args:
        observation: "state" or "pointcloud".
        goal_speed: See `StateGoals` [m/s]; ignored for clouds, which hold no velocity.

    Raises:
        ValueError: Unknown observation.
    """
    if observation == StateGoals.name:
        return StateGoals(goal_speed)
    if observation == CloudGoals.name:
        return CloudGoals()
    raise ValueError(f"observation is {observation!r}; valid names: state, pointcloud")


def _pad_left(goal: ArrayT, width: int) -> ArrayT:
    """Return `goal` preceded by `width` columns of zeros."""
    if isinstance(goal, Tensor):
        return torch.nn.functional.pad(goal, (width, 0))
    zeros = np.zeros((*goal.shape[:-1], width), dtype=goal.dtype)
    return np.concatenate([zeros, goal], axis=-1)
