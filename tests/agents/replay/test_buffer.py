"""What the project's replay buffers share: batches for any algorithm, and what they refuse."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import SAC
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import envs  # noqa: F401 (registers the tasks)
from agents.replay.buffer import Batch
from agents.replay.hindsight import HindsightReplayBuffer
from agents.replay.shaped import ShapedReplayBuffer
from shaping.goals import make_goals

OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
ACTIONS = gym.spaces.Box(-1, 1, (2,), np.float32)


def reward(achieved, desired, info=None):
    return (np.linalg.norm((achieved - desired)[..., :2], axis=-1) < 0.02).astype(float)


BUFFERS = {
    ShapedReplayBuffer: {},
    HindsightReplayBuffer: {"goals": make_goals("state"), "compute_reward": reward, "goal_speed": 1.0},
}


def test_batches_are_those_of_stable_baselines3_s_algorithms():
    assert Batch._fields[: len(ReplayBufferSamples._fields)] == ReplayBufferSamples._fields


@pytest.mark.parametrize("timeouts", [True, False])
@pytest.mark.parametrize("buffer", BUFFERS)
def test_the_layout_that_saves_memory_is_refused(buffer, timeouts):
    """It takes the next row for the next observation, which after a time limit is another episode's."""
    settings = {"optimize_memory_usage": True, "handle_timeout_termination": timeouts, **BUFFERS[buffer]}
    with pytest.raises(ValueError, match="optimize_memory_usage"):
        buffer(50, OBSERVATIONS, ACTIONS, **settings)


@pytest.mark.parametrize("buffer", BUFFERS)
def test_dictionaries_are_refused(buffer):
    space = gym.spaces.Dict({"state": OBSERVATIONS})
    with pytest.raises(ValueError, match=f"{buffer.__name__}: observations are a dictionary"):
        buffer(5, space, ACTIONS, **BUFFERS[buffer])


@pytest.mark.parametrize("buffer", BUFFERS)
def test_a_normalised_environment_is_refused_by_the_buffer_of_whichever_algorithm(buffer):
    env = VecNormalize(DummyVecEnv([lambda: gym.make("PushPlane-v0")]))
    settings = {"replay_buffer_class": buffer, "replay_buffer_kwargs": BUFFERS[buffer]}
    with pytest.raises(ValueError, match="VecNormalize"):
        SAC("MlpPolicy", env, learning_starts=4, buffer_size=10, **settings).learn(6)
