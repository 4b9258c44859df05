"""A reward is a function of the sampled rows."""

import gymnasium as gym
import numpy as np
import pytest

from agents.replay import ShapedReplayBuffer
from agents.replay.rewards import Rows
from agents.sac import SAC

OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
ACTIONS = gym.spaces.Box(-1, 1, (2,), np.float32)


class Learned:
    """A reward with a weight that every call raises."""

    def __init__(self) -> None:
        self.weight = 0.0

    def __call__(self, rows: Rows) -> np.ndarray:
        self.weight += 1.0
        return np.full(len(rows.rows), self.weight, np.float32)

    def get_state(self) -> dict[str, float]:
        return {"weight": self.weight}

    def set_state(self, state: dict[str, float]) -> None:
        self.weight = state["weight"]


def filled(reward, steps=30, **changes) -> ShapedReplayBuffer:
    buffer = ShapedReplayBuffer(40, OBSERVATIONS, ACTIONS, reward=reward, **changes)
    rng = np.random.default_rng(0)
    states = rng.normal(size=(steps + 1, 1, 3)).astype(np.float32)
    for step in range(steps):
        end = np.array([step % 10 == 9])
        action = rng.uniform(-1, 1, (1, 2)).astype(np.float32)
        buffer.add(states[step], states[step + 1], action, end.astype(float), end, [{"is_success": bool(end)}])
    return buffer


@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_reward_sees_the_rows_that_are_sampled(n_steps):
    """The sum of what a row holds, discounted over its steps, by brute force."""

    def of_all(rows: Rows) -> np.ndarray:
        parts = (rows.observations, 10 * rows.actions, 100 * rows.next_observations)
        return np.concatenate(parts, axis=1).sum(axis=1) + 1000 * rows.task_rewards

    buffer = filled(of_all, n_steps=n_steps)
    buffer.discount = 0.5
    single = [
        (
            buffer.observations[row, 0].sum()
            + 10 * buffer.actions[row, 0].sum()
            + 100 * buffer.next_observations[np.array([row]), np.array([0])].sum()
            + 1000 * buffer.rewards[row, 0]
        )
        for row in range(30)
    ]
    batch = buffer._batch(np.arange(30), np.zeros(30, int))
    for row in range(30):
        left = min(n_steps, 10 - row % 10)
        expected = sum(0.5**i * single[row + i] for i in range(left))
        assert batch.rewards[row, 0].item() == pytest.approx(expected, rel=1e-4, abs=1e-2)


def test_a_reward_knows_what_is_demonstrated():
    reward = lambda rows: np.where(rows.demonstrated, 2.0, -1.0).astype(np.float32)  # noqa: E731
    buffer = filled(reward)
    buffer.set_demonstrations(filled(reward), 0.25)
    rewards = buffer.sample(40).rewards[:, 0]
    assert (rewards[:30] == -1).all() and (rewards[30:] == 2).all()


def test_a_reward_that_learns_is_in_the_agent_s_state():
    agents = [
        SAC(
            "MlpPolicy",
            gym.make("Pendulum-v1"),
            replay_buffer_class=ShapedReplayBuffer,
            replay_buffer_kwargs={"reward": Learned(), "success": lambda info: False},
            learning_starts=10,
            batch_size=4,
            device="cpu",
        )
        for _ in range(2)
    ]
    agents[0].learn(20)
    state = agents[0].get_state()
    assert state["reward"]["weight"] == agents[0]._n_updates == 10
    agents[1].learn(1)
    agents[1].set_state(state)
    assert agents[1].replay_buffer.reward.weight == state["reward"]["weight"]
