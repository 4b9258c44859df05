"""Values against the steps that the goal policy takes."""

import gymnasium as gym
import numpy as np
import torch

import assets
import envs  # noqa: F401 (registers the tasks)
from agents.prior.calibration import calibrate
from shaping.value import ValueEstimator


class Watched(gym.Wrapper):
    """Keeps every observation with the action taken there."""

    def __init__(self, env):
        super().__init__(env)
        self.taken = []

    def reset(self, **settings):
        self.observation, info = self.env.reset(**settings)
        return self.observation, info

    def step(self, action):
        self.taken.append((self.observation, np.array(action)))
        self.observation, *others = self.env.step(action)
        return self.observation, *others


def test_the_goal_policy_acts_within_other_bounds_too():
    estimator = ValueEstimator.load(assets.path("estimators/push-plane-state.pt"))
    task = Watched(gym.make("PushPlane-v0", success_speed=0.1))
    low, high = np.float32([-0.02, 0.5]), np.float32([0.02, 2.5])
    rescaled = Watched(gym.wrappers.RescaleAction(task, low, high))
    assert calibrate(estimator, rescaled, 4).success_rate == 1.0
    assert all(rescaled.action_space.contains(action) for _, action in rescaled.taken)
    observations, actions = map(np.stack, zip(*task.taken, strict=True))
    np.testing.assert_allclose(actions, estimator.act(torch.from_numpy(observations)).detach(), atol=1e-5)
