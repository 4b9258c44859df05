"""Demonstrated goals of a potential, and their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from shaping.goals import GoalSet


class DemonstratedGoals:
    """The goals of all demonstrations, concatenated.

    V_d^j(t) = γ^(H_j − t), where H_j is the length of demonstration j [steps]       (paper, eq. demo_reward)

    Args:
        demonstrations: One array of observations per demonstration, shape (H_j + 1, *shape); the last is in the goal
            set.
        goals: Goal set of the observations.
        gamma: Discount γ [1 per step].
        shape: Shape of one observation; None takes that of the goal set, with any number of points.

    Attributes:
        goal: Goals, shape (goals, goal_dim), clipped to the range the estimator was trained on.
        value: V_d of each goal, shape (goals,).
        shift: Array to subtract from an observation to substitute each goal, shape (goals, ...).
        starts: Index of the first goal of each demonstration, followed by the total number of goals.
        observation_shape: Shape of one observation.

    Raises:
        ValueError: There is no demonstration, or one is empty, has the wrong shape or is not finite.
    """

    def __init__(
        self,
        demonstrations: Sequence[Float[np.ndarray, "_ ..."]],
        goals: GoalSet,
        gamma: float,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        arrays: list[np.ndarray] = []
        for index, demonstration in enumerate(demonstrations):
            arrays.append(_checked(index, demonstration, goals, shape))
            shape = arrays[0].shape[1:]
        if not arrays:
            raise ValueError("no demonstrations; a potential needs at least one")
        lengths = [len(array) for array in arrays]
        value = [gamma ** np.arange(length - 1, -1, -1, dtype=np.float64) for length in lengths]
        self.observation_shape: tuple[int, ...] = arrays[0].shape[1:]
        self.starts = np.cumsum([0, *lengths])
        self.goal = np.concatenate([goals.clip(goals.extract(array)) for array in arrays])
        self.value = np.concatenate(value).astype(np.float32)
        self.shift = goals.shift(self.goal)
        self._goals = goals

    def in_order(self, spacing: float) -> Int[np.ndarray, " kept"]:
        """Return the indices of goals in descending order of value, without near duplicates across demonstrations.

        Goals are near duplicates if they lie in the same cell of a grid of width `spacing` in position and
        `spacing` / 0.1 s in velocity. Each cell keeps only the goals of the demonstration to which its most valuable
        goal belongs. Thus many demonstrations along one path cost little more than one. A single demonstration keeps
        all of its goals.

        Args:
            spacing: Width of a cell [m]; 0 keeps all goals.
        """
        order = np.argsort(-self.value, kind="stable")
        if spacing == 0.0 or len(self.starts) == 2:
            return order
        width = np.full(self.goal.shape[1], 10.0 * spacing)
        width[self._goals.counted] = spacing * np.asarray(self._goals.scale)
        _, cell = np.unique(np.floor(self.goal[order] / width), axis=0, return_inverse=True)
        demonstration = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))[order]
        _, first = np.unique(cell, return_index=True)
        return order[demonstration == demonstration[first][cell.reshape(-1)]]

    def __len__(self) -> int:
        return len(self.goal)

    def split(self, row: np.ndarray) -> list[np.ndarray]:
        """Split an array with one entry per goal, shape (goals,), into one per demonstration, shape (H_j + 1,)."""
        return np.split(row, self.starts[1:-1])

    def locate(self, index: int) -> tuple[int, int]:
        """Return the demonstration j and the step t of a goal."""
        demonstration = int(np.searchsorted(self.starts, index, side="right")) - 1
        return demonstration, int(index - self.starts[demonstration])


def _checked(
    index: int,
    demonstration: Float[np.ndarray, "steps ..."],
    goals: GoalSet,
    shape: tuple[int, ...] | None,
) -> Float[np.ndarray, "steps ..."]:
    """Return a demonstration as float32; raises ValueError with one line that names the demonstration and the error."""
    try:
        array = np.asarray(demonstration, dtype=np.float32)
    except (TypeError, ValueError):
        raise ValueError(
            f"demonstration {index}: not an array of numbers; pass its observations (steps, ...)"
        ) from None
    if shape is None:
        usual = goals.observation_shape
        expected = (*array.shape[1:2], *usual[1:]) if len(usual) > 1 else usual
    else:
        usual = expected = shape
    if array.shape[1:] != expected or array.size == 0:
        wanted = ", ".join(map(str, usual))
        raise ValueError(
            f"demonstration {index}: shape {array.shape}; {goals.name} observations have (steps, {wanted})"
        )
    finite = np.isfinite(array).reshape(len(array), -1).all(axis=1)
    if not finite.all():
        step = int(np.flatnonzero(~finite)[0])
        raise ValueError(f"demonstration {index}: step {step} is not finite; record it again")
    return array
