"""Goals of the pushing task: the puck in the state and in the cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from shaping.goals.goal_set import ArrayT, GoalSet


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
    counted: ClassVar[slice] = slice(0, 2)

    def extract(self, observation: Float[ArrayT, "*batch 8"]) -> Float[ArrayT, "*batch 4"]:
        """Return `[s_PG, v_PG]`."""
        return observation[..., 4:8]

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
    """Goals of the cloud `[p_i − E, p_i − G]` [m]: the centroid of the points relative to the goal.

    The centroid does not depend on the order of the points, and the same shift is subtracted from every point.

    Attributes:
        num_points: Number of points.
        dims: Number of coordinates, 2 in the plane or 3 in space.
    """

    num_points: int = 20
    dims: int = 2

    name: ClassVar[str] = "pointcloud"
    counted: ClassVar[slice] = slice(None)

    def __post_init__(self) -> None:
        for what, number in (("num_points", self.num_points), ("dims", self.dims)):
            if not (isinstance(number, int) and number > 0):
                raise ValueError(f"{what} is {number!r}; give a whole number above 0")

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of an observation."""
        return (self.num_points, 2 * self.dims)

    @property
    def goal_dim(self) -> int:
        """Size of a goal."""
        return self.dims

    @property
    def reported(self) -> int:
        """Size of the goals in `info`: position and velocity, since a success is also slow."""
        return 2 * self.dims

    def extract(self, observation: Float[ArrayT, "*batch points columns"]) -> Float[ArrayT, "*batch dims"]:
        """Return the centroid of `p_i − G`."""
        return observation[..., self.dims :].mean(-2)

    def shift(self, goal: Float[ArrayT, "*batch dims"]) -> Float[ArrayT, "*batch 1 columns"]:
        """Return one row for all points: zeros for the columns relative to E, followed by the goal."""
        return _pad_left(goal[..., None, :], self.dims)


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
