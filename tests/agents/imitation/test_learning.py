"""Every baseline learns a sparse toy that random actions do not solve."""

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback

from agents.imitation import dril
from agents.replay.rewards import Rows
from tests.agents.imitation.toy import HORIZON, averaged, episodes, make, reward_of, success_rate, toy_of

STEPS = {"bc": 2000, "gail": 4000, "pwil": 5000, "dril": 2000, "adril": 4500}
REWARDS = ("gail", "pwil", "dril", "adril")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(dril, "ITERATIONS", 3000)


def of_random(seed=0):
    rng = np.random.default_rng(seed)
    return lambda seen: rng.uniform(-1.0, 1.0, seen.shape).astype(np.float32)


@pytest.mark.parametrize("name", ["gail", "pwil"])
def test_random_actions_do_not_solve_the_toys(name):
    env = toy_of(name)
    assert success_rate(env, of_random(), 200) <= 0.05
    assert success_rate(env, env.expert) == 1.0


class Reached(BaseCallback):
    """Ends a training as soon as the agent succeeds in nine of ten episodes; looks every 250 steps."""

    def __init__(self, env):
        super().__init__()
        self.env, self.rate = env, 0.0

    def _on_step(self):
        if self.num_timesteps % 250 == 0:
            self.rate = success_rate(self.env, averaged(self.model))
        return self.rate < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STEPS)
def test_the_toy_is_solved(name, seed):
    model, reached = make(name, seed), Reached(toy_of(name))
    model.learn(STEPS[name], callback=reached, log_interval=None)
    assert reached.rate >= 0.9


@pytest.mark.parametrize("name", REWARDS)
def test_the_expert_earns_more_than_random_actions_after_200_steps(name):
    """Returns of fresh episodes with the rewards of an agent that has learned for 200 steps."""
    model = make(name)
    model.learning_starts = 100
    model.learn(300, log_interval=None)
    assert returned(name, model, toy_of(name).expert) > returned(name, model, of_random())


def returned(name, model, act):
    """Mean reward of fresh episodes; AdRIL compares demonstrated rows with the agent's of an earlier round."""
    reward, env = model.replay_buffer.reward, toy_of(name)
    buffer = episodes(env, act, 5, seed=500)
    seen, actions, dones = (part[: buffer.size()] for part in (buffer.observations, buffer.actions, buffer.dones))
    if name == "pwil":
        fresh = reward_of(name, model)
        return np.mean([fresh.collect(*row) for row in zip(seen, actions, dones, strict=True)])
    buffer.demonstrated = name == "adril" and getattr(act, "__name__", "") == "expert"
    return np.mean(reward(all_rows(buffer)))


def all_rows(buffer):
    return Rows(buffer, np.arange(buffer.size()), np.zeros(buffer.size(), int))


@pytest.mark.parametrize("name", STEPS)
def test_a_demonstration_may_be_shorter_than_a_batch(name, monkeypatch):
    monkeypatch.setattr(dril, "ITERATIONS", 10)
    model = make(name, demonstrations=1)
    assert model.replay_buffer.demonstrations.size() <= HORIZON < model.batch_size
    before = [p.clone() for p in model.actor.parameters()]
    model.learn(320, log_interval=None)
    assert any((a != b).any() for a, b in zip(before, model.actor.parameters(), strict=True))
