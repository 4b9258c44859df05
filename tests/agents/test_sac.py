"""The learner's targets, discount and guide."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from agents.build import make_agent, make_env
from agents.sac import SAC


@pytest.fixture
def model(small):
    config = small()
    return make_agent(config, make_env(config))


def test_the_discount_is_annealed_from_zero_and_the_potential_s_is_not(model):
    assert model.discount == 0.0
    model.num_timesteps = 50
    assert model.discount == pytest.approx(0.99 * 0.5, abs=0.01)
    model.num_timesteps = 100
    assert model.discount == 0.99
    assert model.replay_buffer.gamma == model.replay_buffer.potential.gamma == 0.99


def test_targets_stay_within_their_bounds_and_a_goal_keeps_its_one(model):
    model.learn(60)
    batch = model.replay_buffer.sample(16)
    for rewards, bound in ((100.0, 1.0), (-100.0, -2.0)):
        changed = batch._replace(rewards=torch.full_like(batch.rewards, rewards))
        assert (model._target(changed, changed.next_observations, torch.tensor(0.1)) == bound).all()
    goal = batch._replace(rewards=torch.ones_like(batch.rewards), dones=torch.ones_like(batch.dones))
    assert (model._target(goal, goal.next_observations, torch.tensor(0.1)) == 1.0).all()


def test_methods_switch_on_what_their_names_say(small):
    for method in ("buffer+potential+annealing", "potential", "buffer", "sparse"):
        config = small(method=method)
        agent = make_agent(config, make_env(config))
        buffer = agent.replay_buffer
        assert (buffer.potential is not None) == ("potential" in method)
        assert (buffer.demonstrations is not None) == ("buffer" in method)
        assert agent.annealing_steps == (100 if "annealing" in method else 0)
        assert (agent.guide is not None) == ("potential" in method)


def test_demonstrations_end_with_the_reward_of_the_task(model):
    demonstrated = model.replay_buffer.demonstrations
    assert demonstrated.rewards.sum() == demonstrated.dones.sum() == 1
    assert demonstrated.rewards[-1, 0] == demonstrated.dones[-1, 0] == 1
    assert demonstrated.potentials[-1, 0, 1] == 1.0


def test_guided_episodes_are_whole_and_have_their_share(small):
    config = small()
    learner = dataclasses.replace(config.learner, guided_share=0.5, guide_noise=0.0)
    guide = make_agent(dataclasses.replace(config, learner=learner), make_env(config)).guide
    observation = guide.potential.demonstrated
    assert observation is not None
    observations = np.zeros((1, 8), np.float32)
    shares = []
    for _ in range(400):
        guide(observations, np.array([True]))
        first = guide.guided.copy()
        for _ in range(3):
            guide(observations, np.array([False]))
            assert (guide.guided == first).all()
        shares.append(first[0])
    assert 0.4 < np.mean(shares) < 0.6


def test_it_stays_a_stable_baselines_algorithm(model, tmp_path):
    model.learn(60)
    observation = model._last_obs
    action, _ = model.predict(observation, deterministic=True)
    model.save(tmp_path / "agent.zip")
    loaded = SAC.load(tmp_path / "agent.zip", device="cpu")
    np.testing.assert_allclose(loaded.predict(observation, deterministic=True)[0], action, atol=1e-6)
    assert tuple(loaded.target_bounds) == (-2.0, 1.0)
    assert loaded.annealing_steps == 100


def test_it_learns_as_any_algorithm_with_the_stock_policy_and_buffer():
    agent = SAC("MlpPolicy", gym.make("Pendulum-v1"), learning_starts=20, batch_size=16, buffer_size=100, seed=0)
    before = [p.clone() for p in agent.policy.parameters()]
    agent.learn(30)
    changed = [not torch.equal(a, b) for a, b in zip(before, agent.policy.parameters(), strict=True)]
    assert agent._n_updates > 0 and all(changed)
