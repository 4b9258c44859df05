"""What relabelled goals tell about the motion that an observation hides."""

import gymnasium as gym
import numpy as np
import pytest

from agents.hindsight import NEARBY, HindsightReplayBuffer
from shaping.goals import make_goals

STILL = np.zeros(2)


def near(achieved, desired):
    return (np.linalg.norm((achieved - desired)[..., :2], axis=-1) < 0.02).astype(float)


def make_buffer(**settings):
    """Fill with pucks that slide straight on at 1 cm a step, of which the observation shows no velocity."""
    rng = np.random.default_rng(0)
    spaces = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32)
    buffer = HindsightReplayBuffer(
        1000, *spaces, goals=make_goals("state"), goal_reward=near, goal_speed=0.0, relabelled=1.0, **settings
    )
    goal = np.zeros(4)
    for _ in range(50):
        angle = rng.uniform(0, 2 * np.pi)
        motion = 0.01 * np.array([np.cos(angle), np.sin(angle)])
        puck = rng.normal(0, 0.05, 2)
        for step in range(20):
            rows = [np.float32([[*motion, 0, 0, *p, 0, 0]]) for p in (puck, puck + motion)]
            puck = puck + motion
            info = {"achieved_goal": np.concatenate([puck, STILL]), "desired_goal": goal}
            buffer.add(*rows, np.zeros((1, 2)), np.zeros(1), np.array([step == 19]), [info])
    return buffer


def alignment(batch):
    """Mean cosine between the hidden motion and the direction of the relabelled goal."""
    motion, to_goal = batch.observations[:, :2].numpy(), -batch.observations[:, 4:6].numpy()
    cosine = (motion * to_goal).sum(1) / np.linalg.norm(motion, axis=1) / np.linalg.norm(to_goal, axis=1)
    return cosine.mean()


def test_goals_of_the_future_give_hidden_motion_away_and_those_nearby_do_not():
    assert alignment(make_buffer().sample(2000)) > 0.99
    assert abs(alignment(make_buffer(nearby=1.0).sample(2000))) < 0.05


def test_goals_nearby_lie_around_the_puck_and_are_rewarded_where_the_next_state_reaches_them():
    batch = make_buffer(nearby=1.0).sample(2000)
    distance = batch.observations[:, 4:6].norm(dim=1).numpy()
    assert distance.max() <= NEARBY + 1e-6
    assert np.histogram(distance, 5, (0, NEARBY))[0].min() > 300
    reached = batch.next_observations[:, 4:6].norm(dim=1).numpy() < 0.02
    assert 0 < reached.mean() < 0.5
    assert (batch.rewards.numpy()[:, 0] == reached).all()
    assert (batch.dones == batch.rewards).all()


@pytest.mark.parametrize(("steps", "expected"), [(1000, 1.0), (2000, 0.5)])
def test_the_share_nearby_rises_with_the_steps(steps, expected):
    batch = make_buffer(nearby=1.0, nearby_steps=steps).sample(4000)
    motion, to_goal = batch.observations[:, :2].numpy(), -batch.observations[:, 4:6].numpy()
    along = motion[:, 0] * to_goal[:, 1] - motion[:, 1] * to_goal[:, 0]
    assert (np.abs(along) > 1e-6).mean() == pytest.approx(expected, abs=0.03)
