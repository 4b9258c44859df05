"""Pucks of another shape and friction; the default one is that of the shipped files."""

import json
import pickle
import xml.etree.ElementTree as ET

import gymnasium as gym
import h5py
import mujoco
import numpy as np
import pytest
import robosuite

import assets
from envs.push.env import PushEnv
from envs.push.expert import ROD_RADIUS
from envs.push.geometry import PUCK_HALF_HEIGHT, SLOT, TABLE_HEIGHT, Puck, checked_puck
from envs.push.make import gymnasium_arguments
from envs.push.placement import Placement
from envs.push.playback import describe_environment, describe_model
from envs.record import demonstrate

FLAT = TABLE_HEIGHT + PUCK_HALF_HEIGHT
YAWS = np.deg2rad(np.arange(0, 180, 15))


@pytest.fixture(scope="module")
def box():
    env = PushEnv("push-slot", grids=3, success_speed=0.02, puck=Puck("box"))
    yield env
    env.close()


def put(env, position, axis, angle) -> None:
    env.reset(seed=0)
    quaternion = np.empty(4)
    mujoco.mju_axisAngle2Quat(quaternion, np.array(axis, float), angle)
    env.data.qpos[env._puck] = [*position, *quaternion]
    mujoco.mj_forward(env.model, env.data)


def touching(env) -> set[str]:
    """Names of the geoms that the puck touches."""
    names = [{env.model.geom(int(geom)).name for geom in pair} for pair in env.data.contact.geom]
    return {name for pair in names if "puck_g0" in pair for name in pair - {"puck_g0"}}


def test_the_default_puck_is_that_of_the_shipped_demonstration():
    """The whole model is, but for the memory that MuJoCo reserves."""
    with h5py.File(assets.path("demonstrations", "push-slot-1.hdf5")) as file:
        shipped = ET.fromstring(file["data/demo_0"].attrs["model_file"])
    env = PushEnv("push-slot", puck={})
    env.reset(seed=0)
    today = ET.fromstring(describe_model(env))
    env.close()
    for root in (shipped, today):
        root.remove(root.find("size"))
    assert ET.canonicalize(ET.tostring(shipped)) == ET.canonicalize(ET.tostring(today))


@pytest.mark.parametrize("half_width", [Puck().half_width, SLOT.half_width / 2**0.5])
def test_a_box_fits_into_the_slot_at_any_yaw(half_width):
    puck = Puck("box", half_width)
    env = PushEnv("push-slot", success_speed=0.02, puck=puck)
    for yaw in YAWS:
        put(env, (max(0.0, puck.radius - SLOT.depth), 0.0, FLAT), (0, 0, 1), yaw)
        assert not {name for name in touching(env) if name.startswith("slot")}
        assert env._info()["is_success"]
    put(env, (0.0, 0.0, FLAT), (0, 0, 1), np.deg2rad(45))
    assert touching(env) >= {"slot_back"}
    env.close()


def test_a_box_pushed_home_succeeds_at_any_yaw_and_wherever_it_lies_across_the_slot():
    extent = Puck("box").half_width * (np.abs(np.cos(YAWS)) + np.abs(np.sin(YAWS)))
    assert np.hypot(extent - SLOT.depth, SLOT.half_width - extent).max() < 0.02


def test_a_box_on_its_side_is_no_success(box):
    for face in ((1, 0, 0), (0, 1, 0)):
        put(box, (0.0, 0.0, TABLE_HEIGHT + box.puck.half_width), face, np.pi / 2)
        assert box.goal_reward(box._info()["achieved_goal"], box._info()["desired_goal"]) == 1.0
        assert not box._info()["is_success"]
    put(box, (0.0, 0.0, FLAT), (1, 0, 0), np.pi)
    assert box._info()["is_success"]


@pytest.mark.parametrize(("shape", "friction"), [("cylinder", 0.3), ("box", 0.1)])
def test_a_sliding_puck_stops_by_its_friction(shape, friction):
    """After v²/(2μg), on the table whose own friction does not count."""
    env = PushEnv("push-plane", puck={"shape": shape, "friction": friction})
    env.reset(seed=0, options={"puck": [0.0, -0.2], "end_effector": [-0.1, 0.2]})
    env.data.qvel[env._puck_velocity] = 0.0, 0.5
    for _ in range(20):
        env.step(np.zeros(2))
    slid = env.puck_position[1] + 0.2
    assert slid == pytest.approx(0.5**2 / (2 * friction * 9.81), rel=0.05)
    env.close()


def test_the_end_effector_starts_beside_the_puck():
    puck = Puck("box")
    rng = np.random.default_rng(0)
    starts = [Placement(slot=False, puck=puck).sample(rng)[:2] for _ in range(300)]
    assert min(np.linalg.norm(tip - at) for at, tip in starts) > puck.radius + ROD_RADIUS


def test_the_expert_pushes_a_slippery_box_from_every_grid():
    env = PushEnv("push-slot", grids=3, success_speed=0.02, puck=Puck("box", friction=0.1), horizon=200)
    for grid in range(3):
        trajectory = demonstrate(env, grid, seed=5)
        assert trajectory is not None and trajectory.horizon >= 90
    env.close()


def test_copies_and_descriptions_have_the_same_puck(box):
    assert pickle.loads(pickle.dumps(box)).puck == box.puck
    described = json.loads(json.dumps(describe_environment(box)))
    built = robosuite.make(described["env_name"], **described["env_kwargs"])
    again = gym.make(**gymnasium_arguments(described, "state"))
    for model in (built.sim.model._model, again.unwrapped.model):
        assert model.geom("puck_g0").type == mujoco.mjtGeom.mjGEOM_BOX
        np.testing.assert_allclose(model.geom("puck_g0").size, [0.03, 0.03, 0.015])
    built.close()
    again.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": ["box"]}, r"unknown shape \['box'\]"),
        ({"shape": "sphere"}, "unknown shape 'sphere'; known shapes: cylinder, box"),
        ({"shape": "box", "half_width": 0.04}, r"half_width is 0.04; .* it must lie in \[0.01, 0.0318198\] m"),
        ({"half_width": np.nan}, "half_width is nan"),
        ({"half_width": "wide"}, "half_width is 'wide'"),
        ({"friction": 0}, "friction is 0; it must be a finite number above 0"),
        ({"friction": np.inf}, "friction is inf"),
        ({"radius": 0.03}, "give a Puck, or a mapping with any of shape, half_width, friction"),
        ("box", "puck is 'box'; give a Puck"),
    ],
)
def test_an_invalid_puck_is_refused_in_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        checked_puck(settings)
    assert "\n" not in str(caught.value)
