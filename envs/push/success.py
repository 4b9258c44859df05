"""Success conditions: the puck is in the goal set, which is defined in the plane, and lies on the table."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from envs.push.geometry import PUCK_HALF_HEIGHT, SLOT, TABLE_HEIGHT

SUCCESS_DISTANCE = 0.02  # the puck is in the goal set if it is closer to the goal [m]
HEIGHT_TOLERANCE = 0.005  # largest height error of the puck's centre; pushing lifts it by less than 3 mm [m]
UPRIGHT = np.cos(np.deg2rad(10.0))  # smallest cosine of the puck's tilt; pushing tilts it by less than 6°
STEP = 0.05  # time between two observations [s]


def in_goal_set(achieved_goal: np.ndarray, desired_goal: np.ndarray, distance: float, speed: float) -> np.ndarray:
    """Return whether position and velocity of the puck, in the plane, are close to those of the goal.

    Args:
        achieved_goal: Position and velocity of the puck, shape (..., 4) [m, m/s].
        desired_goal: Position and velocity of the goal, shape (..., 4) [m, m/s].
        distance: The distance must be below this [m].
        speed: The relative speed must be below this [m/s].

    Returns:
        Flags, shape (...).
    """
    difference = np.asarray(achieved_goal) - np.asarray(desired_goal)
    near = np.linalg.norm(difference[..., :2], axis=-1) < distance
    slow = np.linalg.norm(difference[..., 2:], axis=-1) < speed
    return near & slow


def lies_on_table(pose: np.ndarray) -> np.ndarray:
    """Return whether the puck lies flat on the table, on either face.

    Args:
        pose: Position [m] and quaternion (w, x, y, z) of the puck, world frame, shape (..., 7).

    Returns:
        Flags, shape (...).
    """
    w, x, y, z = np.moveaxis(pose[..., 3:] ** 2, -1, 0)
    upright = np.abs(w - x - y + z) > UPRIGHT * (w + x + y + z)
    return upright & (np.abs(pose[..., 2] - TABLE_HEIGHT - PUCK_HALF_HEIGHT) < HEIGHT_TOLERANCE)


def push_success(
    goal_reward: Callable[[np.ndarray, np.ndarray, Any], np.ndarray],
) -> Callable[[Mapping[str, np.ndarray]], np.ndarray]:
    """Return the function that tells which states of a demonstration in the slot are in the goal set.

    Position and velocity of the puck relative to the goal are computed from the most accurate observation:

    - "state" holds both as simulated.
    - "puck_pose" holds the position in the world frame; the goal is that of the slot, which is fixed. The velocity is
      the mean over the previous step. Whenever it was recorded, it also decides whether the puck lies on the table.
    - "pointcloud" gives the centroid of the visible points, a few millimetres from the puck's centre towards the
      camera, and its mean velocity over the previous step. In 15 demonstrations of the expert it reached the goal set 0
      to 3 steps after the puck (0.1 m/s).

    Without the state, the observations decide only what is in the goal set; elsewhere the flags are NaN. Without any of
    the three, as with images alone, all flags are NaN.

    Args:
        goal_reward: As `PushEnv.goal_reward`: puck and goal, position and velocity each, shapes (..., 4), and info →
            reward (...), with the success speed of the observations in use.

    Returns:
        Function from observations, shape (H + 1, …) each, to flags, shape (H + 1,); see `first_success`.
    """

    def success(observations: Mapping[str, np.ndarray]) -> np.ndarray:
        if observations.keys().isdisjoint(("state", "puck_pose", "pointcloud")):
            return np.full(len(next(iter(observations.values()))), np.nan)
        solved = goal_reward(_relative_to_goal(observations), np.zeros(4), {}) > 0
        if "puck_pose" in observations:
            solved &= lies_on_table(observations["puck_pose"])
        return solved if "state" in observations else np.where(solved, 1.0, np.nan)

    return success


def _relative_to_goal(observations: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return position and velocity of the puck relative to the goal, shape (H + 1, 4) [m, m/s]."""
    if "state" in observations:
        return observations["state"][:, 4:8]
    if "puck_pose" in observations:
        position = observations["puck_pose"][:, :2] - SLOT.goal
    else:
        position = observations["pointcloud"][..., 2:].mean(axis=1)
    velocity = np.diff(position, axis=0, prepend=position[:1]) / STEP
    return np.concatenate([position, velocity], axis=1)
