"""The task of this project: push the puck into the slot."""

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import assets
import envs  # noqa: F401 (registers the environments)
from agents.tasks.contract import Task, View
from agents.tasks.registry import register_task
from envs.demonstrations import Trajectory
from envs.push.make import SUCCESS_SPEEDS
from envs.push.success import SUCCESS_DISTANCE, in_goal_set
from shaping.goals import CloudGoals, GoalSet, StateGoals
from shaping.success.observed_goal import ObservedGoal
from shaping.success.reached import GoalTest

IMAGE = (4, 48, 48)  # shape of an image with colours and depth
SEEN_AT_GOAL = 0.05  # maximum distance between the goal and the mean of the observed points at a success [m]


def make_plane(obs: str, **kwargs: Any) -> gym.Env:
    """Make the obstacle-free plane; success in a cloud is judged by the visible points."""
    env = gym.make("PushPlane-v0", obs=obs, **kwargs)
    return env if obs == "state" else ObservedGoal(env, CloudGoals())


def _at_rest(offset: np.ndarray) -> np.ndarray:
    return in_goal_set(offset, np.zeros(4), SUCCESS_DISTANCE, SUCCESS_SPEEDS["state"])


def _seen(offset: np.ndarray) -> np.ndarray:
    return np.hypot(offset[..., 0], offset[..., 1]) < SEEN_AT_GOAL


def _images(env: gym.Env, trajectory: Trajectory) -> np.ndarray:
    from envs.push.playback import play_states  # imported late: it imports the simulator

    observe = env.get_wrapper_attr("observe")
    return np.stack([observe() for _ in play_states(env, trajectory)])


def by_encoder(estimator: Path) -> dict[str, Path]:
    """Return the files NAME-ENCODER.pt beside the file NAME.pt, by encoder."""
    prefix = f"{estimator.stem}-"
    return {file.stem.removeprefix(prefix): file for file in estimator.parent.glob(f"{prefix}*.pt")}


def _push_view(goals: GoalSet, encoder: str, meaning: str, reached: GoalTest) -> View:
    space = spaces.Box(-np.inf, np.inf, goals.observation_shape, np.float32)
    shipped = assets.path("estimators") / f"push-plane-{goals.name}.pt"
    return View(space, encoder, goals, shipped, meaning, reached, estimators=by_encoder(shipped))


def _image_view() -> View:
    high = np.ones(IMAGE, np.float32)
    high[3] = 2.0
    meaning = "red, green, blue in [0, 1], then depth [m] up to 2 m, of the camera 'overhead'; row 0 is the top"
    return View(spaces.Box(np.zeros_like(high), high), "rgbd_cnn", meaning=meaning, from_states=_images, opengl=True)


register_task(
    "push-slot",
    Task(
        make=partial(gym.make, "PushSlot-v0"),
        views={
            "state": _push_view(
                StateGoals(),
                "state",
                "position [m] and velocity [m/s] of the puck relative to the end effector, then to the goal; xy, world",
                _at_rest,
            ),
            "pointcloud": _push_view(
                CloudGoals(),
                "pointnet",
                "points on the visible puck relative to the end effector, then to the goal [m]; xy, world",
                _seen,
            ),
            "rgbd": _image_view(),
        },
        make_play=make_plane,
        demonstrations={grids: assets.path("demonstrations") / f"push-slot-{grids}.hdf5" for grids in (1, 2, 3)},
        prior="push-plane",
        action_meaning="displacement of the end effector in units of 6 cm; xy, world",
    ),
)
