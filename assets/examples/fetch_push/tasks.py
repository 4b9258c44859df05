"""FetchPush around a wall as a task: ``python -m agents.train --task assets.examples.fetch_push.tasks:push_around``."""

from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium_robotics.envs.robot_env import MujocoRobotEnv

import assets
from agents.tasks import gymnasium_task
from assets.examples.fetch_push.environment import PlaneAction, PushAnywhere, PushAround
from perception import PointCloudObservation
from shaping import BoxGoals, CloudGoals

HERE = Path(__file__).parent
DT = 0.04  # duration of a step, by which FetchPush multiplies velocities [s]
STEPS, PLAY_STEPS = 150, 50  # time limits
POINTS = 20
SETTINGS = {"potential.radius": 0.1}  # [m]; a cube at the middle of the wall is farther from the path behind it


def make_push(kind: type[MujocoRobotEnv], steps: int, render_mode: str | None = None) -> gym.Env:
    """Make FetchPush with actions in the plane; episodes are cut after a number of steps."""
    return gym.wrappers.TimeLimit(PlaneAction(kind(render_mode=render_mode)), steps)


def make_states(kind: type[MujocoRobotEnv], steps: int, render_mode: str | None = None) -> gym.Env:
    """Make it with the observation of the project's puck, see `state`."""
    space = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
    return gym.wrappers.TransformObservation(make_push(kind, steps, render_mode), state, space)


def make_clouds(kind: type[MujocoRobotEnv], steps: int, render_mode: str | None = None) -> gym.Env:
    """Make it with points on the cube, relative to the hand and to the goal, xy, shape (20, 4) [m]."""
    return observe_cloud(make_push(kind, steps, render_mode))


def observe_cloud(env: gym.Env) -> PointCloudObservation:
    """Observe points on the cube by the camera at the side of the table."""
    anchors = ["robot0:grip", "goal"]
    return PointCloudObservation(env, ["side"], POINTS, objects=["object0"], relative_to=anchors, plane=True)


def state(seen: dict[str, np.ndarray]) -> np.ndarray:
    """Return displacement and velocity of the cube relative to the hand and to the goal, xy, shape (8,) [m, m/s]."""
    observation = seen["observation"]
    to_hand, to_goal = observation[6:8], (seen["achieved_goal"] - seen["desired_goal"])[:2]
    relative_velocity, hand_velocity = observation[14:16] / DT, observation[20:22] / DT
    return np.concatenate([to_hand, relative_velocity, to_goal, relative_velocity + hand_velocity]).astype(np.float32)


push_around = gymnasium_task(
    partial(make_states, PushAround, STEPS),
    partial(make_states, PushAnywhere, PLAY_STEPS),
    goals=BoxGoals(8, displacement=slice(4, 6)),
    reached=0.05,  # as in FetchPush [m]
    demonstrations=HERE / "push-around.hdf5",
    estimator=assets.path("estimators/push-plane-state.pt"),
    encoder="state",
    settings=SETTINGS,
    meaning="[s_PE, v_PE, s_PG, v_PG] of the cube relative to hand and goal [m, m/s]; xy, world",
    action_meaning="displacement of the hand, 25 mm are 1; xy, world",
)
push_around_clouds = gymnasium_task(
    partial(make_clouds, PushAround, STEPS),
    partial(make_clouds, PushAnywhere, PLAY_STEPS),
    goals=CloudGoals(POINTS, 2),
    reached=0.05,
    demonstrations=HERE / "push-around.hdf5",
    estimator=assets.path("estimators/push-plane-pointcloud.pt"),
    obs="pointcloud",
    encoder="pointnet",
    settings=SETTINGS,
    meaning="points on the cube relative to hand and goal [m]; xy, world",
    action_meaning="displacement of the hand, 25 mm are 1; xy, world",
)
