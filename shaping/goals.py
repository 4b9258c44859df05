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
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from einops import rearrange
from gymnasium import spaces
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
        position: Numbers of a goal that count in the distance; default: all.
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


def _is_plain(columns: object) -> bool:
    """Return whether columns are a slice of whole numbers from 0 on, without a step."""
    if not isinstance(columns, slice) or columns.step not in (None, 1):
        return False
    return all(end is None or (isinstance(end, int) and end >= 0) for end in (columns.start, columns.stop))


KINDS: dict[str, type[BoxGoals] | type[CloudGoals]] = {"box": BoxGoals, "cloud": CloudGoals}


def goals_to_dict(goals: GoalSet) -> dict[str, Any]:
    """Return a goal set as plain data.

    Raises:
        ValueError: It is not a `BoxGoals` or `CloudGoals`.
    """
    for kind, made in KINDS.items():
        if type(goals) is made:
            data = {field.name: getattr(goals, field.name) for field in fields(goals)}
            return {"kind": kind} | {k: [v.start, v.stop] if isinstance(v, slice) else v for k, v in data.items()}
    raise ValueError(f"{type(goals).__name__} cannot be stored in a file; use BoxGoals or CloudGoals")


def goals_from_dict(data: Mapping[str, Any]) -> GoalSet:
    """Return the goal set of `goals_to_dict`.

    Raises:
        ValueError: It is not that of a goal set.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"goals are {data!r}; give a goal set or its plain data")
    given = {k: v for k, v in data.items() if k != "kind"}
    made = KINDS.get(str(data.get("kind")))
    if made is None:
        raise ValueError(f"goals of the kind {data.get('kind')!r}; known kinds: {', '.join(KINDS)}")
    columns = ("displacement", "achieved", "desired", "position")
    slices = {k: slice(*v) for k, v in given.items() if k in columns and v is not None}
    scale = {"scale": tuple(given["scale"])} if isinstance(given.get("scale"), list) else {}
    try:
        return made(**given | slices | scale)
    except TypeError as error:
        raise ValueError(f"goals {dict(data)}: {error}") from None


def _pad_left(goal: ArrayT, width: int) -> ArrayT:
    """Return `goal` preceded by `width` columns of zeros."""
    if isinstance(goal, Tensor):
        return torch.nn.functional.pad(goal, (width, 0))
    zeros = np.zeros((*goal.shape[:-1], width), dtype=goal.dtype)
    return np.concatenate([zeros, goal], axis=-1)
