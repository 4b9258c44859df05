"""Whether a goal is reached, from the difference between achieved and desired goal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from shaping.goals import GoalSet

Reached = float | Callable[[np.ndarray], np.ndarray]
"""Distance from the goal within which it is reached, or a function of the differences achieved − desired (B, goal)."""
GoalTest = Callable[[Float[np.ndarray, "*batch goal"]], Bool[np.ndarray, "*batch"]]
"""Function of the differences achieved − desired that tells where the goal is reached."""


def goal_reward(
    goals: GoalSet, reached: GoalTest, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None
) -> Float[np.ndarray, "*batch"]:
    """Return 1 where the goal is reached, else 0.

    Args:
        goals: Goal set of the observations.
        reached: See `goal_test`.
        achieved_goal: Achieved goals (…, `goals.reported`).
        desired_goal: Desired goals (…, `goals.reported`).
        info: Ignored.
    """
    offset = (np.asarray(achieved_goal) - desired_goal)[..., : goals.goal_dim]
    return np.asarray(reached(offset), dtype=float)


def goal_test(goals: GoalSet, reached: Reached | None, env: Any) -> GoalTest:
    """Return the function that tells where a goal is reached.

    Args:
        goals: Goal set, in whose metric a distance is measured.
        reached: See `Reached`. None asks `compute_reward` of a GoalEnv, whose reward must be sparse and depend on the
            difference of the goals alone.
        env: Environment, or None without one.

    Raises:
        ValueError: `reached` is neither a distance above 0 nor a function, or it is None and the environment has no
            `compute_reward`.
    """
    if reached is None:
        base = None if env is None else env.unwrapped
        compute = getattr(base, "compute_reward", None)
        if compute is None:
            what = "there is no environment to ask" if base is None else f"{base} has no compute_reward"
            raise ValueError(f"{what}: give reached=, the distance within which a goal is reached")
        return lambda offset: (
            compute(offset, np.zeros_like(offset), {}) == compute(np.zeros_like(offset), np.zeros_like(offset), {})
        )
    if callable(reached):
        return lambda offset: np.asarray(reached(offset), dtype=bool)
    if not (isinstance(reached, int | float) and reached > 0):
        raise ValueError(f"reached is {reached!r}; give a distance above 0, or a function of the differences")
    return lambda offset: goals.length(np.atleast_2d(offset)).reshape(offset.shape[:-1]) <= reached
