"""Success is the goal set, in the plane, with the puck flat on the table; in every environment alike."""

import mujoco
import numpy as np
import pytest

from envs.push.env import PushEnv
from envs.push.geometry import PUCK_HALF_HEIGHT, PUCK_RADIUS, SLOT, TABLE_HEIGHT
from envs.push.success import lies_on_table
from envs.push.tasks import PushSlot

REST = TABLE_HEIGHT + PUCK_HALF_HEIGHT


def turned(degrees: float, axis: tuple[float, float, float]) -> np.ndarray:
    quaternion = np.empty(4)
    mujoco.mju_axisAngle2Quat(quaternion, np.array(axis), np.deg2rad(degrees))
    return quaternion


POSES = {  # height of the centre [m], quaternion, success
    "at rest": (REST, turned(0, (1, 0, 0)), True),
    "turned about the vertical": (REST, turned(130, (0, 0, 1)), True),
    "on the other face": (REST, turned(180, (1, 0, 0)), True),
    "lifted and tilted by a push": (REST + 0.003, turned(6, (0, 1, 0)), True),
    "quaternion of another length": (REST, 3.0 * turned(0, (1, 0, 0)), True),
    "30 m above": (30.0, turned(0, (1, 0, 0)), False),
    "1 cm above": (REST + 0.01, turned(0, (1, 0, 0)), False),
    "on the wall of the slot": (TABLE_HEIGHT + SLOT.height + PUCK_HALF_HEIGHT, turned(0, (1, 0, 0)), False),
    "on the floor": (PUCK_HALF_HEIGHT, turned(0, (1, 0, 0)), False),
    "on its edge": (TABLE_HEIGHT + PUCK_RADIUS, turned(90, (0, 1, 0)), False),
    "on its edge, sunk in": (REST, turned(90, (1, 0, 0)), False),
    "leaning": (REST, turned(20, (1, 1, 0)), False),
    "not finite": (np.nan, turned(0, (1, 0, 0)), False),
}


@pytest.mark.parametrize("name", POSES)
def test_the_puck_lies_on_the_table(name):
    height, quaternion, lies = POSES[name]
    assert lies_on_table(np.array([0.1, 0.2, height, *quaternion])) == lies


@pytest.fixture(scope="module")
def slot():
    env = PushEnv("push-slot", success_speed=0.02)
    yield env
    env.close()


@pytest.mark.parametrize("name", [name for name in POSES if name != "not finite"])
def test_gymnasium_and_robosuite_agree(slot, name):
    height, quaternion, success = POSES[name]
    slot.reset(seed=0)
    slot.data.qpos[slot._puck] = [*SLOT.goal, height, *quaternion]
    mujoco.mj_forward(slot.model, slot.data)
    info = slot._info()
    assert info["is_success"] is success and slot.robosuite._check_success() is success
    assert slot.robosuite.reward() == success
    assert slot.goal_reward(info["achieved_goal"], info["desired_goal"]) == 1.0, "the goal set is in the plane"


def test_a_puck_in_the_air_earns_nothing_until_it_lies_in_the_slot(slot):
    slot.reset(seed=0)
    slot.data.qpos[slot._puck] = [*SLOT.goal, 1.2, 1, 0, 0, 0]
    mujoco.mj_forward(slot.model, slot.data)
    successes = []
    for _ in range(30):
        _, reward, terminated, _, info = slot.step(np.zeros(2))
        assert reward == terminated == info["is_success"]
        successes.append(terminated)
    assert not successes[0] and successes[-1] and successes == sorted(successes)


def test_robosuite_s_step_agrees():
    env = PushSlot(success_speed=0.02)
    env.reset()
    for height, success in ((30.0, False), (REST, True)):
        env.sim.data.qpos[-7:] = [*SLOT.goal, height, 1, 0, 0, 0]
        env.sim.data.qvel[-6:] = 0
        assert env.step(np.zeros(2))[1] == success and env._check_success() is success
    env.close()
