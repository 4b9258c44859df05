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
            `compute_reward`, or one that is not sparse.
    """
    if reached is None:
        base = None if env is None else env.unwrapped
        compute = getattr(base, "compute_reward", None)
        if compute is None:
            what = "there is no environment to ask" if base is None else f"{base} has no compute_reward"
            raise ValueError(f"{what}: give reached=, the distance within which a goal is reached")
        check_sparse(compute, np.zeros(goals.goal_dim), base, {})
        return lambda offset: (
            compute(offset, np.zeros_like(offset), {}) == compute(np.zeros_like(offset), np.zeros_like(offset), {})
        )
    if callable(reached):
        return lambda offset: np.asarray(reached(offset), dtype=bool)
    number = isinstance(reached, int | float | np.number) and not isinstance(reached, bool)
    if not (number and 0 < reached < np.inf):
        raise ValueError(f"reached is {reached!r}; give a distance above 0, or a function of the differences")
    return lambda offset: goals.length(np.atleast_2d(offset)).reshape(offset.shape[:-1]) <= reached


def check_sparse(compute_reward: Callable[..., Any], zero: np.ndarray, env: Any, info: dict[str, Any]) -> None:
    """Check that the reward of a GoalEnv tells where a goal is reached.

    A reward that is different at more than four of nine distances between 0.001 and 10 is taken for a dense one.

    Args:
        compute_reward: Method of the environment.
        zero: Zeros of the shape of a goal.
        env: Environment, for messages.
        info: Last argument of `compute_reward`.

    Raises:
        ValueError: It is dense, or it needs more than the goals.
    """
    remedy = "give reached=, the distance within which a goal is reached"
    try:
        rewards = {float(compute_reward(zero + offset, zero, info)) for offset in np.geomspace(1e-3, 10.0, 9)}
    except Exception as error:  # whatever the environment raises
        raise ValueError(f"compute_reward of {env} failed ({type(error).__name__}: {error}); {remedy}") from error
    if len(rewards) > 4:
        raise ValueError(
            f"compute_reward of {env} is not sparse, so it does not tell where a goal is reached: make the environment "
            f"with its sparse reward, or {remedy}; success= asks info for the success of the task"
        )
