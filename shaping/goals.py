"""Goal sets in observation space: extract a goal, substitute it, measure how far away it is.

A goal constrains only the goal-relevant part of an observation (the puck, never the arm), and only ever as a
displacement: observations hold `puck − goal`, so aiming at a demonstrated puck position means subtracting the
demonstration's own displacement,

    (puck − goal) − (puck_demonstrated − goal) = puck − puck_demonstrated,

and no absolute coordinate is needed (paper, section "Learning From (Partial) Observations").

Every function accepts NumPy arrays and torch tensors and returns what it was given.
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
    """What a goal is for one kind of observation.

    Attributes:
        name: kind of observation, as in `make_goals`.
        observation_shape: shape of one observation; a cloud may also have another number of points.
        goal_dim: numbers in a goal; the first two are a planar position [m].
        columns: the columns of an observation that a goal moves.
    """

    name: ClassVar[str]
    observation_shape: ClassVar[tuple[int, ...]]
    goal_dim: ClassVar[int]
    columns: ClassVar[slice]

    @abstractmethod
    def extract(self, observation: Float[ArrayT, "..."]) -> Float[ArrayT, "*batch goal"]:
        """Return the goal an observation achieves: its puck, relative to the environment's goal."""

    @abstractmethod
    def shift(self, goal: Float[ArrayT, "*batch goal"]) -> Float[ArrayT, "..."]:
        """Return what to subtract from an observation to aim it at `goal`; zero outside `columns`."""

    def clip(self, goal: Float[ArrayT, "*batch goal"]) -> Float[ArrayT, "*batch goal"]:
        """Return the goal nearest to `goal` among those the value estimator was trained on."""
        return goal

    def substitute(
        self, observation: Float[ArrayT, "batch ..."], goal: Float[ArrayT, "goals goal"]
    ) -> Float[ArrayT, "batch goals ..."]:
        """Return every observation aimed at every goal, for any number of each."""
        return rearrange(observation, "batch ... -> batch 1 ...") - self.shift(goal)

    def relabel(
        self, observation: Float[ArrayT, "batch ..."], goal: Float[ArrayT, "batch goal"]
    ) -> Float[ArrayT, "batch ..."]:
        """Return observation i aimed at goal i."""
        return observation - self.shift(goal)

    def displacement(
        self, observation: Float[ArrayT, "batch ..."], goal: Float[ArrayT, "goals goal"]
    ) -> Float[ArrayT, "batch goals"]:
        """Return the distance [m] from each observation's puck to each goal; velocities do not count."""
        offset = self.extract(observation)[:, None, :2] - goal[:, :2]
        x, y = offset[..., 0], offset[..., 1]
        return (x * x + y * y) ** 0.5


@dataclass(frozen=True)
class StateGoals(GoalSet):
    """Goals of the state `[s_PE, v_PE, s_PG, v_PG]`: the puck's `[s_PG, v_PG]`, in m and m/s.

    Attributes:
        goal_speed: largest goal velocity per axis [m/s] that the estimator was trained on. A demonstrated
            puck may be faster; `clip` brings its goal back into the trained range.
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
        """Return zeros for the arm's columns, then the goal."""
        return _pad_left(goal, 4)

    def clip(self, goal: Float[ArrayT, "*batch 4"]) -> Float[ArrayT, "*batch 4"]:
        """Return the goal with its velocity within ±`goal_speed`."""
        clipped = goal + 0  # a copy, in NumPy and in torch
        clipped[..., 2:] = goal[..., 2:].clip(-self.goal_speed, self.goal_speed)
        return clipped


@dataclass(frozen=True)
class CloudGoals(GoalSet):
    """Goals of the cloud `[p_i − E, p_i − G]` (xy) [m]: the centroid of the points relative to the goal.

    The centroid does not depend on the order of the points, and one subtraction moves all of them alike.
    """

    name: ClassVar[str] = "pointcloud"
    observation_shape: ClassVar[tuple[int, ...]] = (20, 4)
    goal_dim: ClassVar[int] = 2
    columns: ClassVar[slice] = slice(2, 4)

    def extract(self, observation: Float[ArrayT, "*batch points 4"]) -> Float[ArrayT, "*batch 2"]:
        """Return the centroid of `p_i − G`."""
        return observation[..., self.columns].mean(-2)

    def shift(self, goal: Float[ArrayT, "*batch 2"]) -> Float[ArrayT, "*batch 1 4"]:
        """Return one row for all points: zeros for the columns relative to E, then the goal."""
        return _pad_left(goal[..., None, :], 2)


def make_goals(observation: str, goal_speed: float = 0.05) -> GoalSet:
    """Return the goal set of a kind of observation.

    Args:
        observation: "state" or "pointcloud".
        goal_speed: see `StateGoals`; clouds carry no velocity and ignore it [m/s].

    Raises:
        ValueError: `observation` is neither.
    """
    if observation == StateGoals.name:
        return StateGoals(goal_speed)
    if observation == CloudGoals.name:
        return CloudGoals()
    raise ValueError(f"observation is {observation!r}; valid names: state, pointcloud")


def _pad_left(goal: ArrayT, width: int) -> ArrayT:
    """Return `goal` behind `width` columns of zeros."""
    if isinstance(goal, Tensor):
        return torch.nn.functional.pad(goal, (width, 0))
    zeros = np.zeros((*goal.shape[:-1], width), dtype=goal.dtype)
    return np.concatenate([zeros, goal], axis=-1)
