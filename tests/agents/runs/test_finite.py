"""A number that is not finite stops the run where it appears, says so in one line, and leaves what repeats it."""

import dataclasses
import json

import gymnasium as gym
import numpy as np
import pytest

from agents import runs, train
from agents.collecting.finite_env import FiniteEnv
from agents.collecting.stateful import set_states
from agents.finite import NotFiniteError, check_finite
from agents.methods.shaped_sac import make_agent
from agents.runs.callbacks import Progress
from agents.runs.checkpoint import list_checkpoints, newest_intact, save_checkpoint
from agents.tasks import make_env
from shaping.potential import Potential


class Broken(gym.Wrapper):
    """An environment with a fault in its 40th step, or in its second reset."""

    def __init__(self, env, quantity):
        super().__init__(env)
        self.quantity, self.steps, self.resets = quantity, 0, 0

    def reset(self, **arguments):
        observation, info = self.env.reset(**arguments)
        self.resets += 1
        if self.quantity == "reset" and self.resets == 2:
            observation[2] = np.nan
        return observation, info

    def step(self, action):
        self.steps += 1
        if self.steps == 40 and self.quantity == "physics":
            self.unwrapped.data.qvel[2] = np.nan
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self.steps == 40 and self.quantity == "observation":
            observation[5] = np.inf
        if self.steps == 40 and self.quantity == "reward":
            reward = np.nan
        return observation, reward, terminated, truncated or (self.quantity == "reset" and self.steps == 40), info

    def get_state(self):
        return {"steps": self.steps}

    def set_state(self, state):
        self.steps = state["steps"]


@pytest.fixture
def config(small):
    """Learning begins at step 20, a checkpoint lies at 30."""
    base = small(steps=60, checkpoint_every=30)
    learner = dataclasses.replace(base.learner, learning_starts=20)
    return dataclasses.replace(base, method="buffer+potential+annealing", learner=learner)


def stopped(config, capsys):
    """Train, and return the one line in which it ends and the report."""
    arguments = ["--out", config.out, "--steps", config.steps, "--checkpoint-every", config.checkpoint_every]
    arguments += ["--estimator", config.estimator, "--demonstrations", config.demonstrations, "--device", "cpu"]
    arguments += [
        "--learner.learning-starts",
        20,
        "--learner.batch-size",
        16,
        "--method",
        config.method,
        "--learner.block",
        5,
        "--learner.update-ratio",
        0.4,
        "--evaluation.final-episodes",
        1,
    ]
    with pytest.raises(SystemExit):
        train.main([str(argument) for argument in arguments])
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    (path,) = config.out.glob("not-finite-*.npz")
    assert str(path) in error
    with np.load(path, allow_pickle=False) as file:
        return error, dict(file)


def assert_checkpoint_is_clean(config, step):
    path, damages = newest_intact(config.out / runs.CHECKPOINTS)
    assert path.name == f"step-{step:09d}" and not damages
    for file in path.glob("*.npy"):
        assert np.isfinite(np.load(file)).all()
    runs.load_policy(path)


@pytest.mark.parametrize(
    "quantity, message",
    [
        ("observation", "next observation is inf at index [5] in step 40, episode 1 of the training"),
        ("reward", "reward is nan in step 40, episode 1 of the training"),
        ("reset", "observation is nan at index [2] in step 40, episode 2 of the training"),
        ("physics", "unstable (degree of freedom 2) in step 40, episode 1 of the training"),
    ],
)
def test_a_fault_of_the_environment(config, quantity, message, monkeypatch, capsys):
    made = []

    def broken_env(settings):
        made.append(Broken(make_env(settings), quantity) if not made else make_env(settings))
        return made[-1]

    monkeypatch.setattr(train, "make_env", broken_env)
    error, report = stopped(config, capsys)
    assert message in error
    assert_checkpoint_is_clean(config, 35)  # the block before
    if quantity == "observation":
        env = Broken(make_env(config), quantity)
        env.reset()
        set_states(env, json.loads(str(report["environment"])))
        np.testing.assert_array_equal(env.step(report["action"])[0], report["next_observation"])
        assert report["step"] == 40 and np.isfinite(report["observation"]).all()


def test_a_fault_of_the_potential(config, monkeypatch, capsys):
    evaluate = Potential.__call__

    def broken(self, observations, success):
        values = evaluate(self, observations, success)
        return values if len(observations) > 1 or next(calls) < 150 else values + np.nan

    calls = iter(range(1000))
    monkeypatch.setattr(Potential, "__call__", broken)
    error, report = stopped(config, capsys)
    assert "potential is nan at index [0, 1] in step " in error
    assert np.isnan(report["potential"][0, 1]) and np.isfinite(report["potential"][0, 0])
    assert_checkpoint_is_clean(config, int(report["step"] - 1) // 5 * 5)


@pytest.mark.parametrize(
    "name, skipped, message",
    [
        ("critic.qf0.0.weight", (40,), "critic loss is nan in step 45"),
        ("actor.mu.bias", (40, 45), "weight actor.mu.bias is not finite in step 45"),  # the collector acts with it
    ],
)
def test_a_broken_weight(config, name, skipped, message, monkeypatch, capsys):
    def break_weight(progress):
        if progress.num_timesteps == 40:
            progress.model.policy.state_dict()[name].view(-1)[0] = np.nan
        return True

    monkeypatch.setattr(Progress, "_on_step", break_weight)
    # the update of the step in which the weight breaks would spread it
    monkeypatch.setattr("agents.sac.algorithm.SAC.train", skip(skipped, train.SAC.train))
    error, report = stopped(config, capsys)
    assert message in error
    assert np.isnan(report["weights/actor.mu.bias"]).any()
    assert_checkpoint_is_clean(config, 30)


def skip(steps, method):
    def train_but_once(self, *args, **kwargs):
        return None if self.num_timesteps in steps else method(self, *args, **kwargs)

    return train_but_once


def test_a_broken_policy_is_not_saved(config, tmp_path):
    model = make_agent(config, FiniteEnv(make_env(config), "training"))
    model.learn(20)
    save_checkpoint(model, tmp_path)
    model.policy.state_dict()["critic.qf1.2.bias"][3] = np.inf
    model.num_timesteps += 1
    with pytest.raises(NotFiniteError, match=r"weight critic\.qf1\.2\.bias is not finite"):
        save_checkpoint(model, tmp_path)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-000000020"]
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000020"]


def test_a_row_is_stored_whole_or_not_at_all(config):
    model = make_agent(config, make_env(config))
    model.learn(30)
    buffer = model.replay_buffer
    before = {name: rows.copy() for name, rows in buffer.filled().items()}
    good = {"obs": np.zeros((1, 8)), "next_obs": np.ones((1, 8)), "action": np.zeros((1, 2)), "reward": np.zeros(1)}
    for name, value in good.items():
        row = good | {name: value + np.nan}
        with pytest.raises(NotFiniteError):
            buffer.add(**row, done=np.zeros(1), infos=[{}])
    assert buffer.size() == 30
    for name, rows in buffer.filled().items():
        np.testing.assert_array_equal(rows, before[name])


def test_an_action_is_checked_before_the_simulation_sees_it(config):
    env = FiniteEnv(make_env(config), "training")
    env.reset(seed=0)
    with pytest.raises(NotFiniteError, match=r"action is nan at index \[1\]"):
        env.step(np.array([0.0, np.nan]))


def test_what_is_finite_passes():
    check_finite(reward=1.0, observation=np.zeros((2, 3)), loss=np.float32(1e38), none=np.empty((0, 3)))
