"""Clouds in long runs and in many places: memory, worker processes, copies."""

import copy
import gc
import pickle
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv
from stable_baselines3.common.vec_env import SubprocVecEnv

import envs  # noqa: F401 (registers the tasks)
from perception.rendering import RENDERERS


def make(grids=1, renderer="ray"):
    return gymnasium.make("PushSlot-v0", obs="pointcloud", grids=grids, perception={"renderer": renderer})


def episode(env):
    """50 steps of a vector of two, with the same actions for both."""
    first = env.reset()
    rows = [first[0] if isinstance(first, tuple) else first]
    for action in np.random.default_rng(1).uniform(-1, 1, (50, 2)).astype(np.float32):
        rows.append(env.step(np.stack([action, action]))[0])
    env.close()
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["spawn", "forkserver"])  # a test process is too large to fork
def test_two_workers_see_what_a_lone_environment_sees(context):
    """For 50 steps, without hanging, as Gymnasium and as Stable-Baselines3 start them."""
    env = make()
    env.reset(seed=3)
    expected = [env.reset(seed=3)[0]]
    for action in np.random.default_rng(1).uniform(-1, 1, (50, 2)).astype(np.float32):
        expected.append(env.step(action)[0])
    starts = [make] * 2
    if context == "spawn":
        vector = AsyncVectorEnv(starts, context=context)
        reset = vector.reset
        vector.reset = lambda: reset(seed=[3, 3])
    else:
        vector = SubprocVecEnv(starts, start_method=context)
        vector.seed(3)
        vector.env_method("reset", seed=3)
    rows = episode(vector)
    np.testing.assert_array_equal(rows[:, 0], expected)
    assert rows.shape == (51, 2, 20, 4)


def resident():
    """Resident memory of this process [bytes]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("renderer", RENDERERS)
def test_resets_leak_nothing(renderer):
    env = make(grids=3, renderer=renderer)
    for reset in range(1, 301):
        env.reset(seed=reset)
        env.step(np.zeros(2))
        if reset == 50:
            gc.collect()
            before = resident()
    gc.collect()
    assert resident() - before < 50e6
    env.close()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_environments_that_are_closed_leak_nothing():
    """Built, used and closed again and again, as in a sweep."""
    sizes = []
    for renderer in ["ray", "gl"] * 5:
        env = make(renderer=renderer)
        env.reset(seed=0)
        env.close()
        del env
        gc.collect()
        sizes.append(resident())
    assert sizes[-1] - sizes[3] < 50e6


@pytest.mark.parametrize("renderer", RENDERERS)
def test_copies_see_the_same_and_go_on(renderer):
    env = make(renderer=renderer)
    env.reset(seed=2)
    env.step(np.ones(2))
    copies = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    seen = env.step(-np.ones(2))[0]
    for each in copies:
        np.testing.assert_array_equal(each.step(-np.ones(2))[0], seen)
        each.close()
    env.close()
