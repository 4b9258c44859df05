"""The end of a demonstration: the first success of the task, defined by the reward of the task."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from envs.push.geometry import SLOT
from envs.push.success import lies_on_table

# As `PushEnv.goal_reward`: puck and goal, position and velocity each, shapes (..., 4), and info → reward (...).
ComputeReward = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]
STEP = 0.05  # time between two observations [s]


def first_success(
    observations: Mapping[str, np.ndarray],
    compute_reward: ComputeReward,
    rewards: np.ndarray | None = None,
    dones: np.ndarray | None = None,
) -> int | None:
    """Return the first step that ends in the goal set: min {t ≥ 1: R(puck_t, goal) > 0}.

    Position and velocity of the puck relative to the goal are computed from the most accurate observation:

    - "state" holds both as simulated; rewards and dones are then ignored.
    - "puck_pose" holds the position in the world frame; the goal is that of the slot, which is fixed. The velocity is
      the mean over the previous step. Whenever it was recorded, it also decides whether the puck lies on the table.
    - "pointcloud" gives the centroid of the visible points, a few millimetres from the puck's centre towards the
      camera, and its mean velocity over the previous step. In 15 demonstrations of the expert it reached the goal set 0
      to 3 steps after the puck (0.1 m/s).

    Without the state, a step that was recorded with a reward of 1 or as done is a success too. Rewards other than 0 and
    1 are shaped or scaled and are ignored.

    Args:
        observations: Observations by name, shape (H + 1, …) each.
        compute_reward: Reward of the task, with the success speed of the observations in use.
        rewards: Recorded rewards, shape (H,).
        dones: Recorded dones, shape (H,).

    Returns:
        Step, from 1 to H; None if there is no success.
    """
    solved = compute_reward(_relative_to_goal(observations), np.zeros(4), {}) > 0
    if "puck_pose" in observations:
        solved &= lies_on_table(observations["puck_pose"])
    if "state" not in observations:
        for recorded in (rewards, dones):
            solved[1:] |= recorded == 1 if recorded is not None and np.isin(recorded, (0, 1)).all() else False
    steps = np.flatnonzero(solved[1:])
    return int(steps[0]) + 1 if len(steps) else None


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
