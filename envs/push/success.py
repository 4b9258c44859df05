"""Success conditions: the puck is in the goal set, which is defined in the plane, and lies on the table."""

import numpy as np

from envs.push.geometry import PUCK_HALF_HEIGHT, TABLE_HEIGHT

SUCCESS_DISTANCE = 0.02  # the puck is in the goal set if it is closer to the goal [m]
HEIGHT_TOLERANCE = 0.005  # largest height error of the puck's centre; pushing lifts it by less than 3 mm [m]
UPRIGHT = np.cos(np.deg2rad(10.0))  # smallest cosine of the puck's tilt; pushing tilts it by less than 6°


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
