"""What robosuite's own tasks promise to its `make`, its wrappers and its users holds for ours."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import robosuite
from robosuite.utils.transform_utils import quat2mat
from robosuite.wrappers import DomainRandomizationWrapper, GymWrapper, VisualizationWrapper

import envs  # noqa: F401 (registers the tasks)
from envs.push.geometry import SLOT, TABLE_HEIGHT
from envs.push.placement import TIP_SITE

ROOT = Path(__file__).parents[3]
TASKS = ("PushSlot", "PushPlane")


def make(task="PushSlot", **settings):
    return robosuite.make(task, robots="Panda", **settings)


@pytest.mark.parametrize("order", ["envs, robosuite", "robosuite, envs", "envs.push.tasks, robosuite"])
def test_importing_envs_registers_the_tasks(order):
    """Whatever comes first, and without the simulator before somebody asks for it."""
    script = (
        f"import sys, {order}\n"
        "names = [name for name in robosuite.ALL_ENVIRONMENTS if name.startswith('Push')]\n"
        "env = robosuite.make('PushSlot', robots='Panda')\n"
        "print(*names, type(env) is robosuite.environments.REGISTERED_ENVS['PushSlot'], env.step([1.0, 0.0])[1])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["PushPlane", "PushSlot", "True", "0.0"], done.stderr


def test_importing_envs_imports_no_simulator():
    script = "import sys, envs; print({'robosuite', 'mujoco', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.parametrize("task", TASKS)
def test_an_action_has_the_size_that_is_named(task):
    env = make(task)
    for _ in range(2):
        assert env.action_dim == 2 and [bound.shape for bound in env.action_spec] == [(2,), (2,)]
        env.step(np.zeros(env.action_dim))
        env.reset()
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_observations_hold_puck_and_goal(task):
    env = make(task, seed=0)
    env.reset()
    for _ in range(4):
        observation, *_ = env.step(np.array([1.0, -0.5]))
    data = env.sim.data
    puck, goal = data.get_body_xpos("puck_main"), np.append(env.goal[:2], TABLE_HEIGHT)
    np.testing.assert_array_equal(observation["puck_pos"], puck)
    np.testing.assert_allclose(quat2mat(observation["puck_quat"]), data.get_body_xmat("puck_main"), atol=1e-9)
    np.testing.assert_array_equal(observation["puck_vel"], data.qvel[-6:-3])
    np.testing.assert_array_equal(observation["goal_pos"], goal)
    np.testing.assert_array_equal(observation["goal_vel"], [*env.goal[2:], 0.0])
    np.testing.assert_array_equal(observation["gripper_to_puck_pos"], puck - observation["robot0_eef_pos"])
    np.testing.assert_array_equal(observation["puck_to_goal_pos"], goal - puck)
    assert observation["object-state"].shape == (3 + 4 + 3 + 3 + 3 + 3 + 3,)
    np.testing.assert_array_equal(observation["object-state"][:3], puck)
    env.close()


def test_observations_of_objects_can_be_left_out():
    env = make(use_object_obs=False)
    observation = env.reset()
    assert "object-state" not in observation and "puck_pos" not in observation
    assert "robot0_proprio-state" in observation
    env.close()


def put(env, puck, tip) -> None:
    env.reset_to(np.array(puck), np.array(tip), env.goal)


def test_the_reward_is_scaled():
    for scale, expected in ((1.0, 1.0), (2.5, 2.5), (None, 1.0)):
        env = make(reward_scale=scale)
        put(env, SLOT.goal, [0.15, 0.0])
        assert env.reward() == expected
        put(env, [0.2, 0.2], [0.15, 0.0])
        assert env.reward() == 0.0
        env.close()


def test_the_shaped_reward_grows_towards_success():
    env = make(reward_shaping=True, reward_scale=2.0)
    rewards = []
    for puck, tip in [
        ([0.2, 0.2], [0.0, 0.2]),
        ([0.2, 0.2], [0.14, 0.2]),
        ([0.1, 0.0], [0.16, 0.0]),
        ([0, 0], [0.06, 0]),
    ]:
        put(env, puck, tip)
        rewards.append(env.reward())
        distances = np.linalg.norm([np.subtract(puck, tip), puck], axis=1)
        shaped = 2.0 * (1 - np.tanh(10 * distances)) @ [0.25, 0.5]
        assert rewards[-1] == pytest.approx(2.0 if env._check_success() else shaped, abs=1e-6)
    assert rewards[0] > 0 and np.all(np.diff(rewards) > 0.02) and rewards[-1] == 2.0
    env.close()


@pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("settings", [{}, {"flatten_obs": False}, {"keys": ["object-state"]}])
def test_the_gymnasium_wrapper(task, settings):
    env = GymWrapper(make(task, horizon=3, reward_scale=5.0), **settings)
    assert env.reward_range == (0, 5.0) and env.action_dim == 2
    observation, _ = env.reset(seed=0)
    assert env.action_space.shape == (2,)
    if settings.get("flatten_obs", True):
        assert env.observation_space.shape == observation.shape
        assert observation.size > (20 if "keys" in settings else 50)
    else:
        assert set(observation) == {"object-state", "robot0_proprio-state"}
        assert env.observation_space.contains(observation)
    ends = [env.step(env.action_space.sample())[2] for _ in range(3)]
    assert ends == [False, False, True] and env.compute_reward(None, None, None) == 0.0
    env.close()


@pytest.mark.parametrize("hard_reset", [False, True])
def test_the_visualisation_wrapper(hard_reset):
    """The tip's site is shown, green beside the puck and red far from it; indicators are added to the model."""
    env = VisualizationWrapper(make(hard_reset=hard_reset), indicator_configs="default")
    assert env.get_indicator_names() == ["indicator0"]
    env.set_indicator_pos("indicator0", [0.0, 0.0, 1.0])
    env.reset()
    base = env.unwrapped
    site = base.sim.model.site_name2id(TIP_SITE)
    for tip, green in (([0.05, 0.2], True), ([-0.2, -0.2], False)):
        put(base, [0.1, 0.2], tip)
        env.step(np.zeros(2))
        red, shown = base.sim.model.site_rgba[site][[0, 3]]
        assert shown == 1.0 and (red < 0.5) == green
    env.set_visualization_setting("grippers", False)
    env.step(np.zeros(2))
    assert base.sim.model.site_rgba[site][3] == 0.0
    env.close()


def test_the_randomisation_wrapper():
    env = DomainRandomizationWrapper(make(), seed=0, randomize_color=False)  # colours need MuJoCo 3.1.1
    mass = env.sim.model.body_mass.copy()
    for _ in range(2):
        env.reset()
        observation, *_ = env.step(np.zeros(env.action_dim))
        assert np.isfinite(observation["object-state"]).all()
    assert not np.array_equal(env.sim.model.body_mass, mass)
    env.close()
