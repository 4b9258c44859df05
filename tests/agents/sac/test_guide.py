"""Guided actions: what they reach alone, and in environments whose actions have other bounds."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from agents.config.train import LearnerConfig, TrainConfig
from agents.methods.demonstrations import load_trajectories
from agents.methods.shaped_sac import make_agent
from agents.tasks import make_env

CONFIG = TrainConfig(obs="state", steps=100, learner=LearnerConfig(guided_share=0.5, guide_noise=0.5))
BOUNDS = [(-1.0, 1.0), (-0.02, 0.02), ([-0.1, -3.0], [0.3, 0.7]), ([0.2, -40.0], [0.3, -10.0])]


class Taken(gym.Wrapper):
    """Keeps the actions that it is given."""

    def __init__(self, env):
        super().__init__(env)
        self.actions = []

    def step(self, action):
        self.actions.append(np.array(action))
        return self.env.step(action)


def make(low, high, config=CONFIG):
    """The task with rescaled actions: the agent, what it sends, and what then reaches the task."""
    task = Taken(make_env(config))
    rescaled = Taken(gym.wrappers.RescaleAction(task, np.float32(low), np.float32(high)))
    return make_agent(config, rescaled), rescaled, task


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("noise", [0.5, 100.0])
def test_actions_lie_in_the_action_space_and_are_those_that_are_stored(low, high, noise):
    config = replace(CONFIG, learner=replace(CONFIG.learner, guide_noise=noise))
    agent, rescaled, task = make(low, high, config)
    agent.learn(64)  # eight blocks
    stored = agent.replay_buffer.actions[:64, 0]
    assert all(map(agent.action_space.contains, rescaled.actions))
    np.testing.assert_allclose(rescaled.actions, agent.policy.unscale_action(stored), rtol=1e-6)
    np.testing.assert_allclose(task.actions, stored, atol=2e-5)


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_demonstrated_actions_are_stored_as_they_were_recorded(low, high):
    agent, rescaled, _ = make(low, high)
    recorded = np.concatenate([t.actions for t in load_trajectories(CONFIG, rescaled)])
    np.testing.assert_array_equal(agent.replay_buffer.demonstrations.actions[:, 0], recorded)


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_the_guide_alone_reaches_the_goal_set(obs):
    """The last demonstrated state lies at the edge of the goal set; a guide that stops beside it never gets in."""
    config = TrainConfig(obs=obs, steps=100, learner=LearnerConfig(guided_share=1.0, guide_noise=0.0))
    env = make_env(config)
    guide = make_agent(config, env).guide
    successes, near = 0, []
    for seed in range(10):
        observation, info = env.reset(seed=seed)
        for _ in range(80):
            actions, where = guide(observation[None], np.array([info.get("puck_visible", True)]))
            observation, _, terminated, _, info = env.step(actions[0] * where[0])
            if terminated:
                break
        away = np.hypot(*(info["achieved_goal"] - info["desired_goal"])[:2])
        successes += terminated
        near.append(terminated or away > 0.06)
    assert successes >= 6 and all(near), "none stays near the goal set without entering it"
