"""The tasks as robosuite builds them, with other settings than those of `PushEnv`."""

import mujoco
import numpy as np
import pytest
import robosuite
from robosuite.controllers import load_composite_controller_config
from robosuite.models.objects import BoxObject

from envs.push.controller import osc_config
from envs.push.env import TASKS, PushEnv
from envs.push.geometry import GRIDS, SLOT
from envs.push.placement import puck_addresses
from envs.push.tasks import PushSlot


def make(**settings):
    return robosuite.make(settings.pop("name", "PushSlot"), robots="Panda", **{"seed": 0} | settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"hard_reset": True},
        {"control_freq": 10},
        {"control_freq": 25.0},
        {"ignore_done": True},
        {"renderer": "mujoco"},
        {"lite_physics": False},
        {"name": "PushPlane", "controller_configs": osc_config()},
    ],
)
def test_robosuites_settings(settings):
    env = make(horizon=4, **settings)
    for _ in range(2):
        env.reset()
        ends = [env.step(np.array([0.3, -0.2]))[2] for _ in range(4)]
        assert ends == [False, False, False, "ignore_done" not in settings]
    env.close()
    env.close()


def test_the_same_seed_draws_the_same_starts():
    first, second, other = (make(grids=3, seed=seed) for seed in (4, 4, 5))
    starts = []
    for env in (first, second, other):
        puck, _ = puck_addresses(env.sim.model._model)
        rows = []
        for _ in range(4):
            env.reset()
            rows.append(env.sim.data._data.qpos[puck : puck + 2].copy())
        starts.append(rows)
    np.testing.assert_array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[0], starts[2])
    assert np.abs(np.array(starts)[:, :, None] - GRIDS).max(axis=-1).min(axis=-1).max() < 0.031


@pytest.mark.parametrize("hard_reset", [False, True])
def test_robosuites_own_cameras(hard_reset):
    """Colour and depth of the named cameras, of the current state after every reset."""
    cameras = {"camera_names": ["overhead", "oblique"], "camera_heights": 48, "camera_widths": 64}
    env = make(use_camera_obs=True, has_offscreen_renderer=True, camera_depths=True, hard_reset=hard_reset, **cameras)
    images = [env.reset()["overhead_image"] for _ in range(2)]
    assert images[0].shape == (48, 64, 3) and not np.array_equal(*images)
    observation, *_ = env.step(np.zeros(2))
    assert observation["oblique_depth"].shape == (48, 64, 1) and np.ptp(observation["oblique_depth"]) > 0
    env.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"control_freq": 30}, "control_freq is 30 Hz; physics runs at 500 Hz"),
        ({"control_freq": 0}, "control_freq is 0 Hz"),
        ({"gripper_types": "PandaGripper"}, "gripper_types is 'PandaGripper'; .* built for the Pusher"),
        ({"gripper_types": None}, "gripper_types is None"),
        ({"initialization_noise": "default"}, "initialization_noise is 'default'; the start places the arm, give None"),
        (
            {"controller_configs": load_composite_controller_config(controller="BASIC")},
            r"envs.push.controller.osc_config\(\)",
        ),
        ({"grids": 4}, "reset grids 1 to 3"),
        ({"success_speed": -1.0}, "success_speed is -1.0"),
    ],
)
def test_what_the_tasks_are_not_built_for_is_refused(settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        make(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("action", [np.full(2, np.nan), np.zeros(7), np.zeros(0)])
def test_an_action_that_cannot_be_is_named(action):
    env = make()
    env.reset()
    with pytest.raises(ValueError, match=r"action is .*; give 2 finite numbers"):
        env.step(action)
    env.close()


class Crowded(PushSlot):
    """Two boxes with joints of their own, in the model before the puck or behind it."""

    before = True

    def _load_model(self) -> None:
        super()._load_model()
        boxes = [BoxObject(f"box{i}", size=[0.02] * 3, rgba=[0.85, 0.15, 0.1, 1]) for i in range(2)]
        (puck,) = self.model.mujoco_objects
        self.model = type(self.model)(
            self.model.mujoco_arena,
            [robot.robot_model for robot in self.robots],
            [*boxes, puck] if self.before else [puck, *boxes],
        )


@pytest.mark.parametrize("before", [True, False])
def test_other_objects_in_the_model_shift_nothing(monkeypatch, before):
    """Wherever the puck is in the model: the same starts, states, motions and success."""
    plain = PushEnv("push-slot")
    monkeypatch.setitem(TASKS, "push-slot", type("Crowd", (Crowded,), {"before": before}))
    crowded = PushEnv("push-slot")
    assert crowded.model.nq == plain.model.nq + 14
    boxes = [crowded.model.joint(f"box{i}_joint0").qposadr[0] for i in range(2)]
    for seed in range(3):
        first, same = (env.reset(seed=seed)[0] for env in (plain, crowded))
        for i, address in enumerate(boxes):
            crowded.data.qpos[address : address + 3] = [-0.2, 0.3 + 0.1 * i, 0.82]  # out of the way
        mujoco.mj_forward(crowded.model, crowded.data)
        np.testing.assert_array_equal(first, same)
        np.testing.assert_allclose(plain.puck_pose, crowded.puck_pose)
        way = plain.puck_position[:2] - plain.end_effector_position[:2]
        for _ in range(4):
            rows = [env.step(way / np.linalg.norm(way)) for env in (plain, crowded)]
            np.testing.assert_allclose(rows[0][0], rows[1][0], atol=1e-5)
            np.testing.assert_allclose(rows[0][4]["achieved_goal"], rows[1][4]["achieved_goal"], atol=1e-5)
    for env in (plain, crowded):
        _, info = env.reset(options={"puck": SLOT.goal, "end_effector": [0.15, 0.0]})
        assert info["is_success"] and env.robosuite._check_success()
