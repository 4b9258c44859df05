"""Goals of any flat observation, given by its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from jaxtyping import Float
from torch import Tensor

from shaping.goals.goal_set import ArrayT, GoalSet


@dataclass(frozen=True)
class BoxGoals(GoalSet):
    """Goals of a flat observation, given by the columns that hold them.

    Give `displacement`, the columns that hold achieved − desired, or `achieved` and `desired`: for an observation
    [x, velocity, goal] ``BoxGoals(size=3, achieved=slice(0, 1), desired=slice(2, 3))``. A goal is relative to the goal
    of the environment in both cases.

    Attributes:
        size: Size of an observation.
        displacement: Columns of achieved − desired.
        achieved: Columns of the achieved goal.
        desired: Columns of the desired goal.
        position: Numbers of a goal that count in the distance, when the others are velocities; default: all. Where a
            position is passed at several speeds, a goal needs the velocity to tell them apart.
        scale: Length that is 1 in the distance, for each number of `position` or for all.

    Raises:
        ValueError: The columns are missing, lie outside the observation, or do not fit together.
    """

    size: int
    displacement: slice | None = None
    achieved: slice | None = None
    desired: slice | None = None
    position: slice | None = None
    scale: float | tuple[float, ...] = 1.0

    name: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        parts = (self.displacement, self.achieved, self.desired, self.position)
        given = [part is not None for part in parts[:3]]
        if given not in ([True, False, False], [False, True, True]):
            raise ValueError("goals of a box are given by displacement=, or by achieved= and desired= (slices)")
        if not all(part is None or _is_plain(part) for part in parts):
            raise ValueError("columns are slices of whole numbers from 0 on without a step, such as slice(0, 2)")
        if not (isinstance(self.size, int) and self.size > 0):
            raise ValueError(f"size is {self.size!r}; give the number of columns of an observation")
        columns = [set(range(*part.indices(self.size))) for part in parts[:3] if part is not None]
        sizes = [len(part) for part in columns]
        inside = all((part.stop or 0) <= self.size for part in parts[:3] if part is not None)
        if not inside or 0 in sizes or len(set(sizes)) > 1 or len(set.union(*columns)) < sum(sizes):
            shown = ", ".join(f"{part.start}:{part.stop}" for part in parts[:3] if part is not None)
            raise ValueError(f"columns {shown} do not fit each other and an observation of {self.size} numbers")
        if self.position is not None and (self.position.stop or 0) > sizes[0]:
            shown = f"{self.position.start}:{self.position.stop}"
            raise ValueError(
                f"position {shown} does not fit goals of {sizes[0]} numbers; it counts numbers of a goal, not columns "
                "of an observation"
            )
        counted = len(range(*self.counted.indices(sizes[0])))
        scale = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        if not all(isinstance(length, int | float) and 0 < length < float("inf") for length in scale):
            raise ValueError(f"scale is {self.scale!r}; give a length above 0, or a tuple of them")
        if not counted or (isinstance(self.scale, tuple) and len(scale) != counted):
            raise ValueError(f"position {self.position} and scale {self.scale} do not fit goals of {sizes[0]} numbers")

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of an observation."""
        return (self.size,)

    @property
    def counted(self) -> slice:
        """Numbers of a goal that count in the distance."""
        return slice(None) if self.position is None else self.position

    @property
    def goal_dim(self) -> int:
        """Size of a goal."""
        part = self.displacement or self.desired
        assert part is not None
        return len(range(*part.indices(self.size)))

    def extract(self, observation: Float[ArrayT, "*batch size"]) -> Float[ArrayT, "*batch goal"]:
        """Return achieved − desired."""
        if self.displacement is not None:
            return observation[..., self.displacement]
        return observation[..., self.achieved] - observation[..., self.desired]

    def centred(self, observation: Float[ArrayT, "*batch size"]) -> Float[ArrayT, "*batch size"]:
        """Return the observation with 0 in the columns of the desired goal, if there are any."""
        if self.desired is None:
            return observation
        centred = observation + 0  # a copy, in NumPy and in torch
        centred[..., self.desired] = 0
        return centred

    def shift(self, goal: Float[ArrayT, "*batch goal"]) -> Float[ArrayT, "*batch size"]:
        """Return zeros, with the goal in the columns of the displacement or, negated, in those of the desired goal."""
        shape = (*goal.shape[:-1], self.size)
        row: Any = goal.new_zeros(shape) if isinstance(goal, Tensor) else np.zeros(shape, dtype=goal.dtype)
        if self.displacement is not None:
            row[..., self.displacement] = goal
        else:
            row[..., self.desired] = -goal
        return row


def dict_goals(space: spaces.Space, position: slice | None = None, scale: float | tuple[float, ...] = 1.0) -> BoxGoals:
    """Return the goals of a GoalEnv whose observations are flattened by Gymnasium's `FlattenObservation`.

    Args:
        space: Observation space of the GoalEnv, with "achieved_goal" and "desired_goal".
        position: See `BoxGoals`.
        scale: See `BoxGoals`.

    Raises:
        ValueError: The space is not that of a GoalEnv.
    """
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {}
    if not {"achieved_goal", "desired_goal"} <= parts.keys():
        raise ValueError(f"{space} is not the observation space of a GoalEnv: no achieved_goal and desired_goal")
    sizes = [spaces.flatdim(part) for part in parts.values()]
    ends = np.cumsum(sizes).tolist()
    columns = {name: slice(end - size, end) for name, end, size in zip(parts, ends, sizes, strict=True)}
    achieved, desired = columns["achieved_goal"], columns["desired_goal"]
    return BoxGoals(ends[-1], achieved=achieved, desired=desired, position=position, scale=scale)


def _is_plain(columns: object) -> bool:
    """Return whether columns are a slice of whole numbers from 0 on, without a step."""
    if not isinstance(columns, slice) or columns.step not in (None, 1):
        return False
    return all(end is None or (isinstance(end, int) and end >= 0) for end in (columns.start, columns.stop))
