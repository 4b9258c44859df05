"""Where a demonstration ends: at the first success of the task, as its own reward defines it."""

from collections.abc import Callable, Mapping

import numpy as np

from envs.push.geometry import SLOT
from envs.push.success import lies_on_table

# Reward of puck and goal, position and velocity each, (..., 4) and (..., 4) → (...): `PushEnv.goal_reward`.
GoalReward = Callable[[np.ndarray, np.ndarray], np.ndarray]
STEP = 0.05  # between two observations [s]


def first_success(
    observations: Mapping[str, np.ndarray],
    goal_reward: GoalReward,
    rewards: np.ndarray | None = None,
    dones: np.ndarray | None = None,
) -> int | None:
    """Find the step after which the task ends: min {t ≥ 1: R(puck_t, goal) > 0}.

    Position and velocity of the puck relative to the goal are taken from the best that was recorded:

    - "state" has both as the simulation had them, and decides alone.
    - "puck_pose" has the position in the world, and the slot is where it always is. The velocity is the mean one of the
      step before. Whatever else was recorded, it says whether the puck lies on the table.
    - "pointcloud" has the centroid of what the camera saw, a few millimetres before the puck's centre, and its mean
      velocity. In 15 demonstrations of the expert it succeeded 0 to 3 steps after the puck (0.1 m/s).

    Without the state, a step that was recorded with a reward of 1 or as done is a success as well. Rewards other than
    0 and 1 are shaped or scaled, and say nothing.

    Args:
        observations: By name, (H + 1, …) each.
        goal_reward: The task's reward, with the success speed of the observations in use.
        rewards: As recorded, (H,).
        dones: As recorded, (H,).

    Returns:
        The step, from 1 to H; None if there is no success.
    """
    solved = goal_reward(_relative_to_goal(observations), np.zeros(4)) > 0
    if "puck_pose" in observations:
        solved &= lies_on_table(observations["puck_pose"])
    if "state" not in observations:
        for recorded in (rewards, dones):
            solved[1:] |= recorded == 1 if recorded is not None and np.isin(recorded, (0, 1)).all() else False
    steps = np.flatnonzero(solved[1:])
    return int(steps[0]) + 1 if len(steps) else None


def _relative_to_goal(observations: Mapping[str, np.ndarray]) -> np.ndarray:
    """Position and velocity of the puck relative to the goal, (H + 1, 4) [m, m/s]."""
    if "state" in observations:
        return observations["state"][:, 4:8]
    if "puck_pose" in observations:
        position = observations["puck_pose"][:, :2] - SLOT.goal
    else:
        position = observations["pointcloud"][..., 2:].mean(axis=1)
    velocity = np.diff(position, axis=0, prepend=position[:1]) / STEP
    return np.concatenate([position, velocity], axis=1)
