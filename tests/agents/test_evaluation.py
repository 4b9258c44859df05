"""Evaluations count what they say."""

from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
import torch

import envs  # noqa: F401 (registers the tasks)
from agents import callbacks
from agents.config import EvaluationConfig
from agents.evaluate import EVALUATE_SEED
from agents.evaluation import EVALUATION_SEED, Evaluation, evaluate, wilson_interval
from agents.files import read_tensors
from agents.runs import policy_weights
from agents.train import FINAL_SEED, train
from envs.geometry import GRIDS


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


def test_evaluations_that_run_beside_each_other_count_their_own_episodes():
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda seed: evaluate(Still(), Coin(), 25, seed=seed), (0, 100, 200, 300)))
    assert [result.episodes for result in results] == [25] * 4
    assert [result.successes for result in results] == [13] * 4
    assert all(len(result.steps) == 25 for result in results)


@pytest.mark.parametrize("seed", [EVALUATION_SEED, FINAL_SEED, EVALUATE_SEED])
def test_starts_differ_and_use_every_grid(seed):
    env = gym.make("PushSlot-v0", grids=3)
    pucks = np.array([env.reset(seed=seed + episode)[1]["achieved_goal"][:2] for episode in range(100)])
    env.close()
    distances = np.linalg.norm(pucks[:, None] - pucks, axis=-1)
    assert np.sum((distances < 1e-6).sum(1) == 1) >= 90
    nearest = np.abs(pucks[:, None] - GRIDS).max(-1).argmin(1)
    assert (np.bincount(nearest, minlength=3) > 10).all()


def test_the_best_policy_is_the_one_with_the_highest_rate_then_the_fewest_steps(small, monkeypatch):
    """Of the evaluations at 20, 40, … 120 that at 80 is the best, though two others have its rate."""
    script = iter([(0.2, 30.0), (0.5, 40.0), (0.5, 35.0), (0.5, 32.0), (0.4, 20.0), (0.5, 32.0)])
    weights = []

    def scripted(model, env, episodes):
        rate, steps = next(script)
        weights.append(policy_weights(model.policy))
        return Evaluation(10, int(10 * rate), rate, (0.0, 1.0), steps, [30] * 10)

    monkeypatch.setattr(callbacks, "evaluate", scripted)
    config = small(steps=120, evaluation=EvaluationConfig(every=20, episodes=1, final_episodes=1))
    train(config)
    best = read_tensors(config.out / "best.pt")
    assert [all(torch.equal(best[name], other[name]) for name in best) for other in weights] == [
        step == 80 for step in (20, 40, 60, 80, 100, 120)
    ]
