"""Evaluations count what they say."""

import gymnasium as gym
import numpy as np
import pytest

from agents.evaluation import evaluate, wilson_interval


class Coin(gym.Env):
    """Succeeds in two steps after an even seed, runs into the time limit of nine after an odd one."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.even, self.count = seed % 2 == 0, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        terminated = self.even and self.count == 2
        return np.zeros(1, np.float32), 0.0, terminated, self.count == 9, {"is_success": terminated}


class Still:
    def predict(self, observation, deterministic):
        assert deterministic
        return np.zeros(1), None


def test_quick_successes_do_not_crowd_out_slow_failures():
    result = evaluate(Still(), Coin(), 10, seed=0)
    assert (result.episodes, result.successes, result.success_rate) == (10, 5, 0.5)
    assert result.mean_steps == 2.0
    assert sorted(set(result.steps)) == [2, 9]


def test_no_success_has_no_mean_steps():
    assert evaluate(Still(), Coin(), 1, seed=1).mean_steps is None


def test_no_episodes_are_refused():
    with pytest.raises(ValueError, match="--episodes is 0"):
        evaluate(Still(), Coin(), 0)


@pytest.mark.parametrize("successes, episodes", [(10, 10), (0, 10), (5, 10), (95, 100)])
def test_wilson_interval_solves_its_equation(successes, episodes):
    """The bounds are the rates whose normal test just rejects the observed one."""
    p = successes / episodes
    low, high = wilson_interval(successes, episodes)
    assert 0 <= low <= p <= high <= 1
    assert high - low > 0.05, "certainty is not to be had from so few episodes"
    for bound in (low, high):
        if 0 < bound < 1:
            assert abs(p - bound) == pytest.approx(1.96 * np.sqrt(bound * (1 - bound) / episodes), abs=1e-9)
