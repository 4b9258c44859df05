"""Baselines on clouds: rewards and cloning see the features of a fixed PointNet."""

import numpy as np
import pytest
import torch

from agents import runs
from agents.config.train import EvaluationConfig, LearnerConfig
from agents.imitation import dril
from agents.methods.potential import load_estimator
from agents.methods.shaped_sac import make_agent
from agents.tasks import make_env
from agents.train import train
from tests.agents.imitation.test_learning import all_rows


@pytest.fixture
def made(small, monkeypatch):
    """Build the agent of a method with one recorded demonstration."""
    monkeypatch.setattr(dril, "ITERATIONS", 20)

    def build(method, **changes):
        config = small("pointcloud", method=method, **changes)
        model = make_agent(config, make_env(config))
        if method == "dril":
            model.replay_buffer.reward.prepare()
        return config, model

    return build


@pytest.mark.parametrize("method", ["gail", "pwil", "dril"])
def test_the_rewards_see_the_prior_s_features(method, made):
    """They are stored with the rows, and do not depend on the order of the points."""
    config, model = made(method)
    shown, reward = model.replay_buffer.demonstrations, model.replay_buffer.reward
    clouds = shown.observations[: shown.size(), 0]
    with torch.no_grad():
        features = load_estimator(config).encoder(torch.from_numpy(clouds))
    expected = torch.cat([features, torch.zeros(len(clouds), 1)], dim=1)
    shuffled = clouds[:, np.random.default_rng(0).permutation(clouds.shape[1])]
    for seen in (reward.embedding(clouds), reward.embedding(shuffled), reward.embedding.rows(all_rows(shown))):
        torch.testing.assert_close(seen, expected, rtol=1e-5, atol=1e-5)


def test_gail_gives_demonstrated_steps_more_than_random_ones(made):
    """After 200 gradient steps of the discriminator, with the estimator that is shipped."""
    learner = LearnerConfig(batch_size=128, learning_starts=200, net_arch=(32, 32), block=200, update_ratio=1.0)
    _, model = made("gail", estimator=None, learner=learner, steps=400)
    model.learn(400, log_interval=None)
    of_agent, of_expert = (all_rows(part) for part in (model.replay_buffer, model.replay_buffer.demonstrations))
    rewards = model.replay_buffer.reward(of_expert)[~of_expert.terminal]
    assert rewards.mean() > model.replay_buffer.reward(of_agent).mean() + 0.1


def test_pwil_gives_demonstrated_steps_more_than_random_ones(made):
    """Those of a whole episode, at whose end all demonstrated steps are there again."""
    _, model = made("pwil", estimator=None, steps=150)
    model.learn(150, log_interval=None)
    assert model.replay_buffer.timeouts[149].all()
    buffer, shown = model.replay_buffer, model.replay_buffer.demonstrations
    steps = zip(*(part[: shown.size()] for part in (shown.observations, shown.actions, shown.dones)), strict=True)
    again = [buffer.reward.collect(*step) for step in steps]
    assert np.mean(again) > buffer.rewards[: buffer.size()].mean() + 1.0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pwil", "adril"])
def test_a_training_ends_with_a_policy(method, small):
    config = small("pointcloud", method=method, steps=120, evaluation=EvaluationConfig(60, 1, 2))
    train(config)
    policy, trained = runs.load_policy(config.out)
    action, _ = policy.predict(make_env(trained).reset(seed=0)[0], deterministic=True)
    assert runs.read_result(config.out)["demonstrations"] == 1 and np.isfinite(action).all()
