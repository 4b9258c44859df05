"""Random observations and batches for tests of the gradient step."""

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from agents.replay.buffer import Batch


class Walk(gym.Env):
    """Random observations of some shape."""

    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, shape: tuple[int, ...] = (8,)):
        self.observation_space = gym.spaces.Box(-1, 1, shape, np.float32)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


class GivenBatches(ReplayBuffer):
    """Returns the batches that it is given, in order."""

    batches: list[Batch]

    def sample(self, batch_size, env=None):
        return ReplayBufferSamples(*self.batches.pop(0)[:5])


def make_batches(count: int, shape: tuple[int, ...] = (8,), size: int = 64) -> list[Batch]:
    draw = torch.Generator().manual_seed(1)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(size, *shape, generator=draw) * 0.4 - 0.2

    return [
        Batch(uniform(*shape), 5 * uniform(2), uniform(*shape), (uniform(1) > 0.1).float(), uniform(1))
        for _ in range(count)
    ]
