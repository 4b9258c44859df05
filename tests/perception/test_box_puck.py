"""The points of a box are on its faces, with both renderers and every camera."""

import mujoco
import numpy as np
import pytest

from envs.push.env import PushEnv
from envs.push.geometry import CAMERAS, PUCK_HALF_HEIGHT, Puck
from envs.push.make import make_push
from perception.cameras import camera_to_world
from perception.point_cloud import back_project, transform
from perception.rendering import make_renderer

HALF = np.array([Puck().half_width, Puck().half_width, PUCK_HALF_HEIGHT])
START = {"puck": [0.1, -0.1], "end_effector": [-0.05, 0.2]}


def turn(env, yaw) -> np.ndarray:
    """Turn the puck and return its rotation matrix."""
    env.data.qpos[env._puck][3:] = np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)
    mujoco.mj_forward(env.model, env.data)
    return env.data.body("puck_main").xmat.reshape(3, 3)


@pytest.mark.parametrize(("renderer", "error"), [("ray", 1e-5), ("gl", 1e-3)])
def test_points_are_on_the_faces(renderer, error):
    env = PushEnv("push-slot", puck=Puck("box"))
    env.reset(seed=0, options=START)
    for camera in CAMERAS:
        view = make_renderer(renderer, env.model, camera, width=128, height=128)
        for yaw in np.deg2rad([0, 20, 45, 70]):
            rotation = turn(env, yaw)
            points = back_project(*view.render(env.data), view.intrinsics)
            world = transform(points, camera_to_world(env.model, env.data, camera))
            beyond = np.abs((world - env.puck_position) @ rotation) - HALF
            assert np.abs(beyond.max(axis=1)).max() < error
            faces = np.bincount(beyond.argmax(axis=1), minlength=3)
            assert len(points) > 20 and faces[2] > 20 and faces[:2].max() > 5, "the top and a side"
        view.close()
    env.close()


def test_the_observed_cloud_is_that_of_the_box():
    env = make_push("push-slot", obs="pointcloud", puck=Puck("box"))
    env.reset(seed=0, options=START)
    rotation = turn(env.unwrapped, np.deg2rad(30))
    cloud = env.step(np.zeros(2))[0]
    local = (cloud[:, 2:] + env.unwrapped.goal_position - env.unwrapped.puck_position[:2]) @ rotation[:2, :2]
    assert np.abs(local).max() < HALF[0] + 1e-4
    assert np.linalg.norm(local, axis=1).max() > HALF[0] + 5e-3, "a corner, outside of the cylinder"
    env.close()
