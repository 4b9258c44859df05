"""Rows of several steps against brute force."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.monitor import Monitor

from agents.replay.shaped import ShapedReplayBuffer
from agents.sac.algorithm import SAC
from tests.shaping.hiding import Height, Hiding

OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
ACTIONS = gym.spaces.Box(-1, 1, (2,), np.float32)
GAMMA = 0.9


def height(observations, success):
    return np.where(success, 1.0, observations.sum(axis=-1)).astype(np.float32)


def episodes(steps, environments, same_start, seed=0):
    """Rows of random episodes that end in the goal set, in failure or at a time limit.

    Every next observation is kept. With `same_start` an episode may begin with the frame in which the last one ended.
    """
    rng = np.random.default_rng(seed)
    now = rng.normal(size=(environments, 3)).astype(np.float32)
    for _ in range(steps):
        following = rng.normal(size=now.shape).astype(np.float32)
        end = rng.choice(["", "success", "failure", "limit"], size=environments, p=[0.85, 0.05, 0.05, 0.05])
        infos = [{"is_success": e == "success", "TimeLimit.truncated": e == "limit"} for e in end]
        yield now, following, rng.uniform(-1, 1, (environments, 2)), (end == "success").astype(float), end != "", infos
        fresh = rng.normal(size=now.shape).astype(np.float32)
        now = np.where(((end != "") & ~same_start)[:, None], fresh, following)


def brute_force(rows, first, env, n, discount):
    """Return the reward, the discount, the last row and whether it is terminal, of up to n steps from row `first`."""
    reward, product, index = 0.0, 1.0, first
    while True:
        now, following, _, rewards, dones, infos = rows[index]
        terminal = bool(dones[env] and not infos[env]["TimeLimit.truncated"])
        success = infos[env]["is_success"]
        after = (1.0 if success else 0.0) if terminal else following[env].sum()
        reward += product * (rewards[env] + GAMMA * after - now[env].sum())
        product *= discount
        if dones[env] or index + 1 == len(rows) or index + 1 - first == n:
            return reward, product, index, terminal
        index += 1


@pytest.mark.parametrize("same_start", [False, True])
@pytest.mark.parametrize("environments", [1, 2])
@pytest.mark.parametrize("size, steps", [(60, 40), (60, 60), (60, 145)], ids=["partly filled", "full", "wrapped"])
@pytest.mark.parametrize("n", [1, 3, 10])
def test_rows_of_several_steps(n, size, steps, environments, same_start):
    """The newest row has nothing behind it but the ring's oldest, and the discount is that of the moment."""
    buffer = ShapedReplayBuffer(
        size * environments,
        OBSERVATIONS,
        ACTIONS,
        n_envs=environments,
        potential=height,
        gamma=GAMMA,
        reward_scale=2.0,
        n_steps=n,
    )
    rows = list(episodes(steps, environments, same_start))
    for now, following, actions, rewards, dones, infos in rows:
        buffer.add(now, following, actions, rewards, dones, infos)
    kept = np.arange(max(0, steps - size), steps)
    for discount in (0.0, 0.7, 0.99):
        buffer.discount = discount
        for env in range(environments):
            batch = buffer._batch(kept % size, np.full(len(kept), env))
            rewards, discounts, last, terminal = zip(
                *(brute_force(rows, first, env, n, discount) for first in kept), strict=True
            )
            np.testing.assert_allclose(batch.rewards[:, 0], 2 * np.array(rewards), atol=1e-4)
            np.testing.assert_allclose(batch.discounts[:, 0], discounts, rtol=1e-5)
            np.testing.assert_array_equal(batch.dones[:, 0], terminal)
            np.testing.assert_array_equal(batch.observations, [rows[i][0][env] for i in kept])
            np.testing.assert_array_equal(batch.next_observations, [rows[i][1][env] for i in last])


def test_features_are_those_of_the_first_and_of_the_last_observation():
    buffer = ShapedReplayBuffer(60, OBSERVATIONS, ACTIONS, potential=height, gamma=GAMMA, n_steps=4)
    buffer.store_features(lambda observations: 3 * observations[:, :2], 2)
    for row in episodes(145, 1, False):
        buffer.add(*row)
    batch = buffer.sample(200)
    torch.testing.assert_close(batch.features, 3 * batch.observations[:, :2])
    torch.testing.assert_close(batch.next_features, 3 * batch.next_observations[:, :2])


def test_demonstrated_rows_are_of_several_steps_too_and_the_discount_moves():
    """As the learner anneals it, through an agent's own updates."""
    seen = []

    class Noted(SAC):
        def update(self, batch):
            seen.append((self.discount, batch.discounts))
            return super().update(batch)

    settings = {"potential": Height(), "gamma": Height.gamma, "n_steps": 3}
    model = Noted(
        "MlpPolicy",
        Monitor(Hiding()),
        replay_buffer_class=ShapedReplayBuffer,
        replay_buffer_kwargs=settings,
        learning_starts=50,
        buffer_size=1000,
        batch_size=200,
        annealing_steps=100,
        policy_kwargs={"net_arch": [8]},
        seed=0,
        device="cpu",
    )
    shown = ShapedReplayBuffer(100, model.observation_space, model.action_space, **settings)
    for _ in range(60):
        frames = np.random.default_rng(0).normal(size=(2, 1, 2)).astype(np.float32)
        shown.add(frames[0], frames[1], np.zeros((1, 1)), np.zeros(1), np.array([False]), [{"puck_visible": True}])
    buffer = model.replay_buffer
    buffer.set_demonstrations(shown, 0.5)
    model.learn(120)
    assert len({discount for discount, _ in seen}) > 40
    for discount, found in seen:
        powers = torch.tensor([discount, discount**2, discount**3])
        distance = (found - powers).abs()
        assert distance.min(dim=1).values.max() < 1e-5 and (distance[:, 2] < 1e-5).float().mean() > 0.2
