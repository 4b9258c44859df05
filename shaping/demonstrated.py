"""Demonstrations as what the potential needs of them: goals on the way, and how much each is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from shaping.goals import GoalSet


class DemonstratedGoals:
    """All goals of all demonstrations, in one row.

    V_d^j(t) = γ^(H_j − t), H_j the steps of demonstration j itself                  (paper, eq. demo_reward)

    Args:
        demonstrations: one array (H_j + 1, *shape) of observations each; the last is in the goal set.
        goals: goal set of the observations.
        gamma: γ [1 per step].
        shape: shape of one observation; None takes that of the goal set, with any number of points.

    Attributes:
        goal: (goals, goal_dim), clipped to the range the estimator was trained on.
        value: V_d of each (goals,).
        shift: what to subtract from an observation to aim it at each goal (goals, ...).
        starts: index of each demonstration's first goal, and behind the last one the number of goals.
        observation_shape: shape of one observation.

    Raises:
        ValueError: there is no demonstration, or one is empty, wrongly shaped or not finite.
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

    def in_order(self, spacing: float) -> Int[np.ndarray, " kept"]:
        """Return goals by falling value; of nearly equal ones, those of one demonstration.

        Positions are equal within cells of `spacing`, velocities within what goes as far in 0.1 s. A cell keeps the
        goals of the demonstration that holds its most valuable one: many demonstrations of one way cost little more
        than one, and one alone keeps all of its goals. With 0 all are kept.

        Args:
            spacing: [m].
        """
        order = np.argsort(-self.value, kind="stable")
        if spacing == 0.0 or len(self.starts) == 2:
            return order
        width = np.full(self.goal.shape[1], 10.0 * spacing)
        width[:2] = spacing
        _, cell = np.unique(np.floor(self.goal[order] / width), axis=0, return_inverse=True)
        demonstration = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))[order]
        _, first = np.unique(cell, return_index=True)
        return order[demonstration == demonstration[first][cell.reshape(-1)]]

    def __len__(self) -> int:
        return len(self.goal)

    def split(self, row: np.ndarray) -> list[np.ndarray]:
        """Return one entry per goal (goals,) as one array (H_j + 1,) per demonstration."""
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
    """Return a demonstration as float32, or raise one line that says which one is wrong and how."""
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
