"""Starts, actions and settings that cannot be: one line that names the value, and nothing has changed."""

import gymnasium as gym
import numpy as np
import pytest

import envs  # noqa: F401 (registers the tasks)
from envs.push.env import PushEnv
from envs.push.tasks import PushSlot


@pytest.fixture(scope="module")
def slot():
    env = PushEnv("push-slot", grids=3)
    yield env
    env.close()


BAD_STARTS = {
    "not finite": ({"puck": [np.nan, 0.0]}, r"puck is \[nan, 0.0\]; give 2 finite numbers"),
    "three numbers": ({"puck": [0.0, 0.0, 0.8]}, "puck is .*; give 2 finite numbers"),
    "no number": ({"end_effector": "here"}, "end_effector is 'here'; give 2 finite numbers"),
    "nothing": ({"end_effector": None}, "end_effector is None; give 2 finite numbers"),
    "no velocity": ({"goal": [0.0, 0.0]}, r"goal is \[0.0, 0.0\]; give 4 finite numbers"),
    "infinite": ({"goal": [0.0, 0.0, np.inf, 0.0]}, "goal is .*; give 4 finite numbers"),
    "puck off the table": ({"puck": [0.0, 0.6]}, "puck is at .* off the table"),
    "goal off the table": ({"goal": [-0.5, 0.0, 0.0, 0.0]}, "goal is at .* off the table"),
    "out of reach": ({"end_effector": [5.0, 0.0]}, r"the arm does not reach the tip position \[5.0, 0.0"),
    "puck in a wall": ({"puck": [0.0, 0.055]}, "mm inside one another"),
    "puck in the pusher": ({"puck": [0.1, 0.2], "end_effector": [0.1, 0.2]}, "mm inside one another"),
    "no such grid": ({"grid": 3}, "grid is 3; the reset grids are 0 to 2"),
    "negative grid": ({"grid": -1}, "grid is -1; the reset grids are 0 to 2"),
    "half a grid": ({"grid": 0.5}, "grid is 0.5; the reset grids are 0 to 2"),
    "unknown": ({"gird": 1}, r"unknown reset options \['gird'\]; known: grid, puck"),
}


@pytest.mark.parametrize("bad", BAD_STARTS)
def test_a_start_that_cannot_be_is_named_and_changes_nothing(slot, bad):
    options, message = BAD_STARTS[bad]
    slot.reset(seed=0)
    slot.step([1.0, 0.5])
    before = slot.get_state()
    with pytest.raises(ValueError, match=message) as caught:
        slot.reset(seed=1, options=options)
    assert "\n" not in str(caught.value)
    assert slot.get_state() == before
    after = slot.step([1.0, 0.5])[0]
    slot.set_state(before)
    np.testing.assert_array_equal(slot.step([1.0, 0.5])[0], after)


@pytest.mark.parametrize("action", [[np.nan, 0.0], [0.0, -np.inf], [0.0], [0.0, 0.0, 0.0], [[0.0, 0.0]], "ab", None])
def test_an_action_that_cannot_be_is_named_and_does_nothing(slot, action):
    slot.reset(seed=0)
    before = slot.get_state()
    with pytest.raises(ValueError, match=r"action is .*; give 2 finite numbers"):
        slot.step(action)
    assert slot.get_state() == before


def test_actions_of_any_precision_beyond_the_box_are_clipped(slot):
    states = []
    for action in (np.array([1.0, -1.0]), np.array([1, -1], np.float32), [1, -1], np.array([3.0, -7.0]), (1e30, -1e30)):
        slot.reset(seed=0)
        states.append(slot.step(action)[0])
    np.testing.assert_array_equal(states, [states[0]] * len(states))


BAD_SETTINGS = [
    ({"task": "push-sloth"}, "known tasks: push-slot, push-plane"),
    ({"grids": 0}, "grids is 0; this task has reset grids 1 to 3"),
    ({"grids": 1.5}, "grids is 1.5"),
    ({"grids": "two"}, "grids is two"),
    ({"horizon": 0}, "horizon is 0"),
    ({"horizon": 2.5}, "horizon is 2.5"),
    ({"success_speed": 0.0}, "success_speed is 0.0"),
    ({"success_speed": float("nan")}, "success_speed is nan"),
    ({"goal_speed": -0.1}, "goal_speed is -0.1"),
    ({"render_mode": "human"}, "unknown render_mode 'human'"),
    ({"camera": "nowhere"}, "unknown camera 'nowhere'; the model has .*overhead, oblique"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS)
def test_a_setting_that_cannot_be_is_named(settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        PushEnv(**settings)
    assert "\n" not in str(caught.value)


def test_settings_that_do_not_fit_the_observation_or_task_are_named():
    with pytest.raises(ValueError, match="known observations: state, pointcloud"):
        gym.make("PushSlot-v0", obs="rgb")
    with pytest.raises(ValueError, match="needs obs='pointcloud' or 'rgbd', not 'state'"):
        gym.make("PushSlot-v0", perception={"cameras": ["oblique"]})
    with pytest.raises(ValueError, match="the plane task has no reset grids"):
        PushEnv("push-plane").reset(options={"grid": 0})


def test_a_step_before_the_first_reset_is_named():
    with pytest.raises(gym.error.ResetNeeded):
        gym.make("PushPlane-v0").step(np.zeros(2))


@pytest.mark.parametrize("field", ["qpos", "qvel", "qfrc_applied"])
@pytest.mark.parametrize("value", [np.inf, np.nan, 1e200])
def test_an_unstable_simulation_is_an_error(slot, field, value):
    """MuJoCo would warn, put everything back to its default state and go on."""
    slot.reset(seed=0)
    before = slot.get_state()
    usual = slot.step([1.0, 0.0])[0]
    slot.set_state(before)
    getattr(slot.data, field)[3] = value
    with pytest.raises(FloatingPointError, match=r"the simulation became unstable \(degree of freedom \d+\)"):
        slot.step([1.0, 0.0])
    slot.data.qfrc_applied[:] = 0
    slot.set_state(before)
    np.testing.assert_array_equal(slot.step([1.0, 0.0])[0], usual)


@pytest.mark.parametrize("name, value", [("success_speed", np.nan), ("success_speed", -1.0), ("horizon", 0)])
def test_a_setting_that_cannot_be_is_named_when_it_is_changed(name, value):
    env = gym.make("PushPlane-v0")
    before = env.get_wrapper_attr(name)
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be"):
        env.set_wrapper_attr(name, value)
    assert env.get_wrapper_attr(name) == before


def test_an_unstable_simulation_is_an_error_in_robosuite_s_environment_too():
    """MuJoCo's default state has the puck in the slot: it would count as success."""
    env = PushSlot()
    env.reset()
    env.sim.data._data.qvel[-6:] = 1e11
    with pytest.raises(FloatingPointError, match="unstable"):
        env.step(np.zeros(2))
    env.close()
