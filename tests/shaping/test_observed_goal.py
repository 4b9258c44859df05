"""The goal that is learned on clouds is judged by what they show, in the real plane task."""

import gymnasium
import numpy as np
import pytest

import envs  # noqa: F401 (registers the tasks)
from agents.collecting.stateful import get_states, set_states
from shaping.goals import make_goals
from shaping.success.observed_goal import ObservedGoal

PUCK, EFFECTOR = np.array([0.03, -0.02]), np.array([-0.1, 0.1])


@pytest.fixture(scope="module")
def env():
    made = ObservedGoal(gymnasium.make("PushPlane-v0", obs="pointcloud"), make_goals("pointcloud"))
    yield made
    made.close()


def seen(env):
    """Centroid of the points that the camera sees [m]."""
    return env.env.get_wrapper_attr("points_world")[:, :2].mean(axis=0)


def start(env, goal):
    """Put the puck at rest, with a goal at rest, and the end effector away from it."""
    _, info = env.reset(seed=0, options={"puck": PUCK, "end_effector": EFFECTOR, "goal": [*goal, 0.0, 0.0]})
    return info


@pytest.fixture
def bias(env):
    """From the puck's centre to the centroid [m]."""
    start(env, PUCK)
    offset = seen(env) - env.unwrapped.puck_position[:2]
    assert np.hypot(*offset) > 0.002
    return offset


@pytest.mark.parametrize("away, observed", [(0.018, True), (0.022, False)], ids=["entered", "missed"])
def test_the_reward_follows_the_centroid_and_not_the_centre(env, bias, away, observed):
    """The goal lies on either side of the puck, on the line through centre and centroid."""
    direction = bias / np.hypot(*bias)
    for goal, centroid_in in ((seen(env) + away * direction, observed), (seen(env) - away * direction, observed)):
        assert start(env, goal)["is_success"] is centroid_in
        _, reward, terminated, truncated, info = env.step(np.zeros(2))
        assert (reward, terminated, info["is_success"]) == (float(centroid_in), centroid_in, centroid_in)
        assert not truncated
    centre_in = [np.hypot(*(seen(env) + side * away * direction - PUCK)) < 0.02 for side in (1, -1)]
    assert centre_in != [observed, observed], "centre and centroid disagree about one of the two goals"


def test_the_achieved_goal_is_the_centroid_and_its_change(env):
    """While the end effector pushes the puck."""
    env.reset(seed=1, options={"puck": [0.0, 0.0], "end_effector": [-0.06, 0.0], "goal": [0.12, 0.1, 0.0, 0.0]})
    before, fastest = seen(env), 0.0
    for _ in range(12):
        _, _, _, _, info = env.step(np.array([1.0, 0.0]))
        np.testing.assert_allclose(info["achieved_goal"][:2], seen(env), atol=1e-6)
        np.testing.assert_allclose(info["achieved_goal"][2:], (seen(env) - before) * 20, atol=1e-4)
        before, fastest = seen(env), max(fastest, np.hypot(*info["achieved_goal"][2:]))
    assert fastest > 0.1


def test_a_puck_that_passes_the_goal_is_too_fast_for_it(env):
    env.reset(seed=1, options={"puck": [0.0, 0.0], "end_effector": [-0.06, 0.0], "goal": [0.05, 0.0, 0.0, 0.0]})
    passed = 0
    for _ in range(12):
        _, reward, _, _, info = env.step(np.array([1.0, 0.0]))
        near = np.hypot(*(info["achieved_goal"] - info["desired_goal"])[:2]) < 0.02
        slow = np.hypot(*info["achieved_goal"][2:]) < env.unwrapped.success_speed
        assert reward == float(near and slow)
        passed += near and not slow
    assert passed


def test_a_hidden_puck_is_never_a_success(env, bias):
    """Wherever it was seen last."""
    assert start(env, PUCK + bias)["is_success"]
    model = env.unwrapped.model
    cameras = model.cam_quat.copy()
    try:
        model.cam_quat[:] = [0.0, 1.0, 0.0, 0.0]  # upwards
        _, reward, terminated, _, info = env.step(np.zeros(2))
        assert info["puck_visible"] is False and not info["is_success"] and (reward, terminated) == (0.0, False)
        assert np.hypot(*(info["achieved_goal"] - info["desired_goal"])[:2]) < 0.02
        assert not start(env, PUCK + bias)["is_success"], "at the start of an episode either"
    finally:
        model.cam_quat[:] = cameras


def test_it_ends_at_the_time_limit(env):
    env.reset(seed=2, options={"puck": PUCK, "end_effector": EFFECTOR, "goal": [-0.1, -0.1, 0.0, 0.0]})
    ends = [env.step(np.zeros(2))[2:4] for _ in range(env.unwrapped.horizon)]
    assert ends == [(False, False)] * (len(ends) - 1) + [(False, True)]


def test_a_state_continues_to_the_last_bit(env):
    env.reset(seed=3, options={"puck": [0.0, 0.0], "end_effector": [-0.06, 0.0], "goal": [0.12, 0.1, 0.0, 0.0]})
    actions = np.random.default_rng(0).uniform([0.5, -0.3], [1.0, 0.3], (8, 2))
    for action in actions[:4]:
        env.step(action)
    state = get_states(env)
    expected = [env.step(action) for action in actions[4:]]
    other = ObservedGoal(gymnasium.make("PushPlane-v0", obs="pointcloud"), make_goals("pointcloud"))
    other.reset(seed=4)
    set_states(other, state)
    for action, (observation, *outcome, info) in zip(actions[4:], expected, strict=True):
        found, *others, again = other.step(action)
        np.testing.assert_array_equal(found, observation)
        np.testing.assert_array_equal(again["achieved_goal"], info["achieved_goal"])
        assert others == outcome
    other.close()
