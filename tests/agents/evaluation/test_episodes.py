"""Evaluations count what they say."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import gymnasium as gym
import numpy as np
import pytest
import torch

import envs  # noqa: F401 (registers the tasks)
from agents.config.train import EvaluationConfig, TrainConfig
from agents.evaluate import EVALUATE_SEED
from agents.evaluation.captions import captioned
from agents.evaluation.episodes import EVALUATION_SEED, Evaluation, Evaluator, evaluate, wilson_interval
from agents.tasks import make_env
from agents.train import FINAL_SEED, train
from envs.push.geometry import GRIDS
from shaping.tensors import read_tensors


class Coin(gym.Env):
    """Succeeds in two steps after an even seed, runs into the time limit of nine after an odd one."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, meet=lambda: None):
        self.meet = meet  # what happens in the middle of every step

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.even, self.count = seed % 2 == 0, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        self.meet()
        terminated = self.even and self.count == 2
        return np.zeros(1, np.float32), 0.0, terminated, self.count == 9, {"is_success": terminated}


class Still:
    def predict(self, observation, deterministic):
        assert deterministic
        return np.zeros(2), None


def test_quick_successes_do_not_crowd_out_slow_failures():
    result = evaluate(Still(), Coin(), 10, seed=0)
    assert (result.episodes, result.successes, result.success_rate) == (10, 5, 0.5)
    assert result.mean_steps == 2.0
    assert sorted(set(result.steps)) == [2, 9]


def test_failures_are_listed_with_where_the_puck_starts_and_ends():
    """A policy that does not move leaves it at the start of its seed."""
    env = gym.make("PushSlot-v0", horizon=5)
    result = evaluate(Still(), env, 3, seed=7)
    starts = [env.reset(seed=seed)[1]["achieved_goal"] for seed in (7, 8, 9)]
    env.close()
    assert [failure.seed for failure in result.failures] == [7, 8, 9]
    for failure, start in zip(result.failures, starts, strict=True):
        assert failure.start == pytest.approx(start, abs=1e-6)
        assert failure.end[:2] == pytest.approx(start[:2], abs=2e-3)
    assert [(one.seed, one.start, one.end) for one in evaluate(Still(), Coin(), 4, seed=0).failures] == [
        (seed, None, None) for seed in (1, 3)
    ]


def test_no_success_has_no_mean_steps():
    assert evaluate(Still(), Coin(), 1, seed=1).mean_steps is None


class Reports(gym.Wrapper):
    """Reports success in other words."""

    def step(self, action):
        *step, info = self.env.step(action)
        return *step, {"result": "won" if info["is_success"] else "lost", "won": info["is_success"]}


@pytest.mark.parametrize("success", ["won", lambda info: info["result"] == "won"])
def test_success_in_other_words_is_counted(success):
    assert evaluate(Still(), Reports(Coin()), 10, seed=0, success=success) == evaluate(Still(), Coin(), 10, seed=0)


def test_an_end_of_unknown_success_is_an_error_that_names_what_info_has():
    for env, keys in ((Reports(Coin()), "'result', 'won'"), (gym.make("Pendulum-v1"), "no keys")):
        with pytest.raises(ValueError, match=f"'is_success'.*info has {keys}: give success="):
            evaluate(Still(), env, 1)


class Nearly(gym.Wrapper):
    """Starts with the puck just outside the goal and the pusher behind it."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed, options={"puck": [0.021, 0.0], "end_effector": [0.065, 0.0]})


class Push:
    def predict(self, observation, deterministic):
        return np.array([-0.15, 0.0]), None


def test_a_video_shows_every_state_with_its_episode_and_step_and_the_last_with_the_outcome():
    """Real pictures: the start, one after each step, and the puck at rest in the slot."""
    env = Nearly(make_env(TrainConfig(), render_mode="rgb_array"))
    frames, pictures = [], []
    draw = env.render
    env.render = lambda: pictures.append(draw()) or pictures[-1]
    result = evaluate(Push(), env, 2, on_frame=frames.append)
    assert result.successes == 2 and len(frames) == sum(result.steps) + 2
    np.testing.assert_array_equal(pictures[-1], draw())
    texts = [
        f"episode {episode}, step {step}{': success' if step == steps else ''}"
        for episode, steps in enumerate(result.steps, 1)
        for step in range(steps + 1)
    ]
    for frame, picture, text in zip(frames, pictures, texts, strict=True):
        np.testing.assert_array_equal(frame, captioned(picture, text))
    env.close()


def test_a_failure_is_named_in_the_last_frame():
    env = make_env(TrainConfig(), render_mode="rgb_array")
    env.unwrapped.horizon = 2
    frames = []
    assert evaluate(Still(), env, 1, on_frame=frames.append).successes == 0
    np.testing.assert_array_equal(frames[-1], captioned(env.render(), "episode 1, step 2: no success"))
    assert len(frames) == 3
    env.close()


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
    """Of one policy, in threads that take every step at once; in half of them the odd episodes come first."""
    seeds, policy, barrier = (0, 1, 100, 101), Still(), Barrier(4)
    alone = [evaluate(policy, Coin(), 26, seed=seed) for seed in seeds]
    assert alone[0].steps == alone[1].steps[::-1] != alone[1].steps
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda seed: evaluate(policy, Coin(lambda: barrier.wait(60)), 26, seed=seed), seeds)
        assert list(together) == alone


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

    def scripted(evaluator, policy):
        rate, steps = next(script)
        weights.append({name: torch.from_numpy(value) for name, value in policy.items()})
        return Evaluation(10, int(10 * rate), rate, (0.0, 1.0), steps, [30] * 10, [])

    monkeypatch.setattr(Evaluator, "__call__", scripted)
    config = small(steps=120, parallel="off", evaluation=EvaluationConfig(every=20, episodes=1, final_episodes=1))
    train(config)
    best = read_tensors(config.out / "best.pt")
    assert [all(torch.equal(best[name], other[name]) for name in best) for other in weights] == [
        step == 80 for step in (20, 40, 60, 80, 100, 120)
    ]
