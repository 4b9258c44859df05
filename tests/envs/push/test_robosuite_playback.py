"""Recorded actions are played back as robosuite's scripts do it: the same state and actions give the same states."""

import json

import numpy as np
import pytest
import robosuite
from robosuite.wrappers import DataCollectionWrapper

import envs  # noqa: F401 (registers the tasks)
from envs.push.env import PushEnv

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # by robosuite's `get_xml`
TASKS = ("PushSlot", "PushPlane")
STEPS = 25


def make(task, **settings):
    return robosuite.make(task, robots="Panda", ignore_done=True, **settings)


def state(env) -> np.ndarray:
    return np.array(env.sim.get_state().flatten())


def play(env, actions) -> np.ndarray:
    states = [state(env)]
    for action in actions:
        env.step(action)
        states.append(state(env))
    return np.array(states)


def to_state(env, start) -> None:
    env.sim.set_state_from_flattened(start)
    env.sim.forward()


def to_xml(env, xml, start) -> None:
    env.reset()
    env.reset_from_xml_string(env.edit_model_xml(xml))
    env.sim.reset()
    to_state(env, start)


def actions_of(seed: int, env) -> np.ndarray:
    """Hit the puck first, then do as a generator says."""
    way = env.sim.data.get_body_xpos("puck_main") - env.robots[0].part_controllers["right"].ref_pos
    hits = np.tile(way[:2] / np.linalg.norm(way[:2]), (8, 1))
    return np.vstack([hits, np.random.default_rng(seed).uniform(-1, 1, (STEPS - 8, 2))])


@pytest.mark.parametrize("hard_reset", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_from_the_xml_and_the_state(task, hard_reset):
    """The task itself too: the goal is a part of the XML."""
    env = make(task, hard_reset=hard_reset, seed=1)
    env.reset()
    xml, start, goal = env.sim.model.get_xml(), state(env), env.goal
    to_xml(env, xml, start)
    np.testing.assert_array_equal(env.goal, goal)
    actions = actions_of(0, env)
    recorded = play(env, actions)
    assert np.abs(recorded[-1] - recorded[0]).max() > 0.1
    env.reset()
    assert task == "PushSlot" or not np.array_equal(env.goal, goal)
    to_xml(env, xml, start)
    np.testing.assert_array_equal(play(env, actions), recorded)
    np.testing.assert_array_equal(env.goal, goal)
    other = make(task, hard_reset=hard_reset, seed=2)
    to_xml(other, xml, start)
    np.testing.assert_array_equal(play(other, actions), recorded)
    np.testing.assert_array_equal(other.goal, goal)
    for each in (env, other):
        each.close()


@pytest.mark.parametrize("lite_physics", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_from_the_state_alone(task, lite_physics):
    """After a reset to another start, in the middle of an episode, and twice; nothing of what came before counts."""
    env = make(task, lite_physics=lite_physics, seed=3)
    env.reset()
    actions = actions_of(1, env)
    recorded = play(env, actions)
    env.reset()
    for _ in range(2):
        to_state(env, recorded[0])
        np.testing.assert_array_equal(play(env, actions), recorded)
    middle = 10
    to_state(env, recorded[middle])
    again = play(env, actions[middle:])
    env.reset()
    play(env, actions[:3])
    to_state(env, recorded[middle])
    np.testing.assert_array_equal(play(env, actions[middle:]), again)
    env.close()


def test_a_look_at_the_state_changes_nothing():
    """Setting the state in which the simulation is, or none, the motion goes on with the target of the step before."""
    env = make("PushPlane", seed=3)
    env.reset()
    start, actions = state(env), actions_of(1, env)
    recorded = play(env, actions)
    to_state(env, start)
    for action, expected in zip(actions, recorded[1:], strict=True):
        env.sim.set_state_from_flattened(state(env))
        env.observation_spec()
        env.step(action)
        np.testing.assert_array_equal(state(env), expected)
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_what_robosuite_collects_is_played_back(task, tmp_path):
    env = DataCollectionWrapper(make(task, seed=4), str(tmp_path))
    env.reset()
    env.reset()  # an episode without steps leaves nothing
    goal, observed = env.goal, env.unwrapped._get_observations(force_update=True)
    for action in actions_of(2, env.unwrapped):
        env.step(action)
    env.close()
    (episode,) = tmp_path.glob("ep_*")
    (file,) = episode.glob("state_*.npz")
    with np.load(file, allow_pickle=True) as data:
        states, actions = data["states"], [info["actions"] for info in data["action_infos"]]
    assert json.loads((episode / "ep_meta.json").read_text()) == {}, "nothing beside the model and the state is needed"
    fresh = make(task, seed=5)
    to_xml(fresh, (episode / "model.xml").read_text(), states[0])
    np.testing.assert_array_equal(fresh.goal, goal)
    again = fresh._get_observations(force_update=True)
    for name in ("puck_pos", "goal_pos", "goal_vel"):
        np.testing.assert_array_equal(again[name], observed[name])
    np.testing.assert_array_equal(play(fresh, actions), states)
    fresh.close()


def test_the_lean_loop_starts_from_a_given_state_alike():
    """A state that is set from outside, as for playback by states, leaves no target of the episode before behind."""
    env = PushEnv("push-slot", grids=3)
    actions = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    env.reset(seed=0)
    start = state(env.robosuite)
    rows = [env.step(action)[0] for action in actions]
    env.reset(seed=1)
    for _ in range(2):
        to_state(env.robosuite, start)
        np.testing.assert_array_equal([env.step(action)[0] for action in actions], rows)
    env.close()
