"""Relabelled batches against brute force."""

import gymnasium as gym
import numpy as np

from agents.replay.hindsight import HindsightReplayBuffer
from shaping.goals import make_goals

OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
ACTIONS = gym.spaces.Box(-1, 1, (2,), np.float32)


def reward(achieved, desired, info=None):
    return (np.linalg.norm((achieved - desired)[..., :2], axis=-1) < 0.02).astype(float)


def push_episodes(buffer, lengths, rng):
    """Fill with random walks of the puck; observation columns 0 and 1 name episode and step."""
    for episode, length in enumerate(lengths):
        puck, goal = rng.normal(0, 0.02, 4), rng.normal(0, 0.02, 4)
        for step in range(length):
            new = puck + rng.normal(0, 0.01, 4)
            row, next_row = ([episode, s, 0, 0, *(p - goal)] for s, p in ((step, puck), (step + 1, new)))
            info = {"achieved_goal": new, "desired_goal": goal, "TimeLimit.truncated": step == length - 1}
            done = np.array([step == length - 1])
            buffer.add(np.float32([row]), np.float32([next_row]), np.zeros((1, 2)), np.zeros(1), done, [info])
            puck = new


def test_relabelled_goals_are_later_achievements_of_the_same_episode_in_a_ring_wrapped_twice():
    buffer = HindsightReplayBuffer(
        50, OBSERVATIONS, ACTIONS, goals=make_goals("state"), compute_reward=reward, goal_speed=1.0, relabelled=1.0
    )
    push_episodes(buffer, [13, 7, 20, 1, 17, 25, 9, 22, 11], np.random.default_rng(0))
    assert buffer.full
    achieved = {}
    for row in range(50):
        episode, step = buffer.next_observations.after(row)[0, :2]
        achieved[episode, step] = buffer.achieved[row, 0], buffer.desired[row, 0]
    batch = buffer.sample(2000)
    later_goals = 0
    for next_observation, got in zip(batch.next_observations.numpy(), batch.rewards.numpy()[:, 0], strict=True):
        episode, step = next_observation[:2]
        puck, _ = achieved[episode, step]
        goal = puck - next_observation[4:]
        matches = [s for (e, s), (p, _) in achieved.items() if e == episode and np.allclose(p, goal, atol=1e-5)]
        assert matches and min(matches) >= step
        assert got == reward(puck, goal)
        later_goals += min(matches) > step
    assert later_goals > 1000
    assert (batch.rewards == batch.dones).all(), "a relabelled row is terminal exactly where it reaches its goal"


def test_rows_that_are_not_relabelled_keep_the_task_s_goal():
    buffer = HindsightReplayBuffer(
        100, OBSERVATIONS, ACTIONS, goals=make_goals("state"), compute_reward=reward, goal_speed=1.0, relabelled=0.0
    )
    push_episodes(buffer, [30, 30], np.random.default_rng(1))
    stored = {tuple(row) for row in buffer.observations[:60, 0]}
    assert {tuple(row) for row in buffer.sample(100).observations.numpy()} <= stored


def test_hindsight_velocities_stay_within_the_trained_range():
    buffer = HindsightReplayBuffer(
        100, OBSERVATIONS, ACTIONS, goals=make_goals("state"), compute_reward=reward, goal_speed=0.005, relabelled=1.0
    )
    push_episodes(buffer, [40], np.random.default_rng(2))
    batch = buffer.sample(300)
    velocity = np.array([buffer.achieved[int(s) - 1, 0, 2:] for s in batch.next_observations[:, 1]])
    goal_velocity = velocity - batch.next_observations[:, 6:].numpy()
    assert np.abs(goal_velocity).max() <= 0.005 + 1e-6
