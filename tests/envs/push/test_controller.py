"""Motions under the control loop are straight, stay in the workspace and do no harm where they meet a wall."""

import numpy as np
import pytest
import robosuite

import envs.push.tasks  # noqa: F401 (registers the tasks)
from envs.push import controller as control
from envs.push.controller import HOLD_RANGE, target_pose
from envs.push.env import PushEnv
from envs.push.geometry import (
    HOLD_HEIGHT,
    MAX_DISPLACEMENT,
    PUCK_HALF_HEIGHT,
    PUCK_RADIUS,
    SLOT,
    TABLE_HEIGHT,
    TABLE_SIZE,
    WORKSPACE,
)


@pytest.fixture(scope="module")
def plane():
    return PushEnv("push-plane", horizon=10_000)


@pytest.fixture(scope="module")
def slot():
    return PushEnv("push-slot", horizon=10_000, success_speed=0.02)


@pytest.mark.parametrize("name", ["PushSlot", "PushPlane"])
def test_robosuite_makes_the_tasks(name):
    env = robosuite.make(name, robots="Panda", horizon=5, seed=0)
    env.reset()
    low, high = env.action_spec
    assert low.tolist() == [-1, -1] and high.tolist() == [1, 1]
    for success in (False, True):
        puck = env.goal[:2] + (0.0 if success else 0.1)
        env.reset_to(puck, np.add(puck, [0.1, 0.0]), env.goal)
        assert env.step(np.zeros(2))[1] == env.reward() == float(env._check_success()) == float(success)
    env.close()


def test_other_robots_are_refused():
    with pytest.raises(ValueError, match="one Panda"):
        robosuite.make("PushSlot", robots="Sawyer")


def test_straight_motions_keep_height_and_line(plane):
    """100 full displacements along x, in five rows: height and y stay within 5 mm."""
    for y in (-0.2, -0.1, 0.0, 0.1, 0.2):
        plane.reset(options={"puck": [0.0, 0.3 if y < 0 else -0.3], "end_effector": [-0.2, y]})
        for sign in (1.0, -1.0):
            tips = []
            for _ in range(10):
                plane.step(np.array([sign, 0.0]))
                tips.append(plane.end_effector_position)
            tips = np.array(tips)
            assert np.ptp(tips[:, 0]) > 0.1
            assert np.abs(tips[:, 1] - y).max() < 5e-3
            assert np.abs(tips[:, 2] - HOLD_HEIGHT).max() < 5e-3


def test_stays_in_the_workspace(plane):
    """100 full displacements outwards end at the border."""
    plane.reset(options={"puck": [0.0, -0.3], "end_effector": [0.0, 0.1]})
    tips = []
    for _ in range(100):
        plane.step(np.array([1.0, 0.0]))
        tips.append(plane.end_effector_position)
    tips = np.array(tips)
    assert np.abs(tips[:, 1] - 0.1).max() < 5e-3 and np.abs(tips[:, 2] - HOLD_HEIGHT).max() < 5e-3
    assert tips[:, 0].max() < WORKSPACE[1, 0] + 5e-3
    assert tips[-1, 0] > WORKSPACE[1, 0] - 0.01


def test_no_action_holds(plane):
    plane.reset(options={"puck": [0.0, 0.3], "end_effector": [0.05, -0.1]})
    for _ in range(50):
        plane.step(np.zeros(2))
    np.testing.assert_allclose(plane.end_effector_position, [0.05, -0.1, HOLD_HEIGHT], atol=3e-3)


def test_target_pose_axioms():
    rng = np.random.default_rng(0)
    for _ in range(200):
        tip, action = np.append(rng.uniform(-0.3, 0.3, 2), 0.8), rng.uniform(-3, 3, 2)
        previous = tip[:2] + rng.normal(0, 0.02, 2)
        target = target_pose(tip, action, previous)
        assert np.all((target[:2] >= WORKSPACE[0]) & (target[:2] <= WORKSPACE[1]))
        assert target[2] == HOLD_HEIGHT
        np.testing.assert_array_equal(target, target_pose(tip, np.clip(action, -1, 1), previous))
        # along the action the target lies d·|a| ahead of the tip, across it at most the hold range away
        inner = target_pose(tip * 0.1, action, previous - 0.9 * tip[:2])[:2] - tip[:2] * 0.1
        clipped = np.clip(action, -1, 1)
        along = inner @ clipped / np.linalg.norm(clipped)
        assert along == pytest.approx(MAX_DISPLACEMENT * np.linalg.norm(clipped))
        assert np.sqrt(max(inner @ inner - along**2, 0.0)) <= HOLD_RANGE + 1e-9


WALLS = {name: (np.array(centre), np.array(size)) for name, (centre, size) in SLOT.walls().items()}
# outwards normal of each wall, and the middle of its outside
OUTSIDE = {"slot_left": (0.0, 1.0), "slot_right": (0.0, -1.0), "slot_back": (-1.0, 0.0)}


def wall_distance(puck):
    """Distance of the puck's centre from the nearest wall [m]."""
    return min(np.linalg.norm(np.maximum(np.abs(puck[:2] - c[:2]) - size[:2], 0.0)) for c, size in WALLS.values())


@pytest.mark.parametrize("wall", OUTSIDE)
def test_hard_pushes_into_a_wall(slot, wall):
    """Pressed against the outside by 50 full actions, also off its centre, the puck neither succeeds nor escapes."""
    centre, size = WALLS[wall]
    normal = np.array(OUTSIDE[wall])
    puck = centre[:2] + normal * (size[:2] @ np.abs(normal) + PUCK_RADIUS + 0.001)
    for offset in (0.0, 0.005, -0.01, 0.02):
        tip = puck + 0.12 * normal + offset * np.abs(normal[::-1])
        slot.reset(options={"puck": puck, "end_effector": tip})
        for _ in range(50):
            _, reward, terminated, _, info = slot.step(-normal)
            assert reward == 0.0 and not terminated and not info["is_success"]
            assert slot.puck_position[2] > TABLE_HEIGHT + PUCK_HALF_HEIGHT - 0.008
            assert wall_distance(slot.puck_position) > PUCK_RADIUS - 0.005
            assert np.all(np.abs(slot.puck_position[:2]) < np.array(TABLE_SIZE[:2]) / 2)


def test_the_puck_stays_on_the_table(slot):
    """A pusher that chases the puck at full speed, with noise, from beside a wall."""
    for start in range(12):
        rng = np.random.default_rng(start)
        slot.reset(
            options={"puck": [0.05 * rng.uniform(-1, 1), 0.096], "end_effector": [0.05 * rng.uniform(-1, 1), 0.2]}
        )
        for _ in range(50):
            way = slot.puck_position[:2] - slot.end_effector_position[:2]
            slot.step(way / np.linalg.norm(way) + rng.normal(0, 0.3, 2))
        assert slot.puck_position[2] > TABLE_HEIGHT
        assert np.all(np.abs(slot.puck_position[:2]) < np.array(TABLE_SIZE[:2]) / 2)


def test_inside_but_too_fast(slot):
    slot.reset(options={"puck": SLOT.goal, "end_effector": [0.15, 0.0]})
    assert slot.robosuite._check_success()
    for speed, success in ((0.019, True), (0.021, False), (0.3, False)):
        slot.data.qvel[-6:-4] = speed * np.array([0.6, 0.8])
        assert slot.robosuite._check_success() == success
        info = slot._info()
        assert info["is_success"] == success
        assert slot.goal_reward(info["achieved_goal"], info["desired_goal"]) == success
    slot.reset(options={"puck": SLOT.goal, "end_effector": [0.15, 0.0]})
    slot.data.qvel[-6] = 0.25  # faster than friction stops within a step
    _, reward, terminated, _, info = slot.step(np.zeros(2))
    assert np.linalg.norm(info["achieved_goal"][:2]) < 0.02 < info["achieved_goal"][2]
    assert reward == 0.0 and not terminated


def test_gains_are_those_of_the_module_when_the_step_is_taken(plane, monkeypatch):
    """Compiled code keeps what it reads from the module, in a cache on the disk too."""

    def moved():
        plane.reset(seed=0)
        start = plane.end_effector_position
        for _ in range(3):
            plane.step([1.0, 0.0])
        return float(np.linalg.norm(plane.end_effector_position - start))

    usual = moved()
    monkeypatch.setattr(control, "KP", 100.0)
    assert moved() < 0.8 * usual
    monkeypatch.undo()
    assert moved() == usual
