"""The learner's targets, discount and guide."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from agents.config import METHODS
from agents.methods.shaped_sac import make_agent
from agents.replay.shaped import ShapedReplayBuffer
from agents.sac.algorithm import SAC
from agents.tasks import make_env
from perception import registry


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

    def targets(changed):
        return model.clip_target(model._target(changed, changed.next_observations, torch.tensor(0.1)))

    for rewards, bound in zip((-100.0, 100.0), model.target_bounds, strict=True):
        found, clipped = targets(batch._replace(rewards=torch.full_like(batch.rewards, rewards)))
        assert (found == bound).all() and clipped == 1.0
    goal = batch._replace(rewards=torch.ones_like(batch.rewards), dones=torch.ones_like(batch.dones))
    found, clipped = targets(goal)
    assert (found == 1.0).all() and clipped == 0.0


def test_methods_switch_on_what_their_names_say(small):
    for method in METHODS:
        config = small(method=method)
        agent = make_agent(config, make_env(config))
        buffer = agent.replay_buffer
        assert (buffer.potential is not None) == ("potential" in method)
        assert (buffer.demonstrations is not None) == ("buffer" in method or bool(METHODS[method].imitation))
        assert (buffer.demonstration_share > 0) == ("buffer" in method) and buffer.alternate == (method == "adril")
        assert agent.annealing_steps == (100 if "annealing" in method else 0)
        assert (agent.guide is not None) == ("guide" in method)


def test_demonstrations_end_with_the_reward_of_the_task(model):
    demonstrated = model.replay_buffer.demonstrations
    assert demonstrated.rewards.sum() == demonstrated.dones.sum() == 1
    assert demonstrated.rewards[-1, 0] == demonstrated.dones[-1, 0] == 1
    assert demonstrated.potentials[-1, 0, 1] == 1.0


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_the_guide_takes_its_share_of_the_steps(small, share):
    """Where a demonstration is in range; its actions are those of the prior's goal policy."""
    base = small()
    learner = dataclasses.replace(base.learner, guided_share=share, guide_noise=0.0, learning_starts=10**6)
    config = dataclasses.replace(base, learner=learner, steps=200)
    model = make_agent(config, make_env(config))
    model.learn(200)
    states, taken = model.replay_buffer.observations[:, 0], model.replay_buffer.actions[:, 0]
    aimed, valid = model.guide.potential.goal(states)
    with torch.inference_mode():
        proposed = model.guide.estimator.act(torch.from_numpy(aimed)).numpy()
    guided = np.isclose(taken, proposed, atol=1e-5).all(axis=1)
    assert valid.sum() > 100 and not (guided & ~valid).any()
    assert abs(guided[valid].mean() - share) < 0.1


def test_it_stays_a_stable_baselines_algorithm(model, tmp_path):
    model.learn(60)
    observation = model._last_obs
    action, _ = model.predict(observation, deterministic=True)
    model.save(tmp_path / "agent.zip")
    loaded = SAC.load(tmp_path / "agent.zip", device="cpu")
    np.testing.assert_allclose(loaded.predict(observation, deterministic=True)[0], action, atol=1e-6)
    assert tuple(loaded.target_bounds) == model.target_bounds == pytest.approx((-1.0, 1.99))
    assert loaded.annealing_steps == 100


def test_it_learns_as_any_algorithm_with_the_stock_policy_and_buffer():
    agent = SAC("MlpPolicy", gym.make("Pendulum-v1"), learning_starts=20, batch_size=16, buffer_size=100, seed=0)
    before = [p.clone() for p in agent.policy.parameters()]
    agent.learn(30)
    changed = [not torch.equal(a, b) for a, b in zip(before, agent.policy.parameters(), strict=True)]
    assert agent._n_updates > 0 and all(changed)


REFUSED = {
    "steps that the buffer has not": ({"n_steps": 3, "replay_buffer_class": ShapedReplayBuffer}, "n_steps is 3"),
    "two discounts": ({"n_steps": 3, "annealing_steps": 10}, "annealing_steps"),
}


@pytest.mark.filterwarnings("ignore:`n_steps=3` is ignored")
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_update_leaves_out_is_refused(name):
    settings, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        SAC("MlpPolicy", gym.make("Pendulum-v1"), buffer_size=10, **settings)


def test_normalised_observations_are_refused(tmp_path):
    """Wherever they come in, and the environment before stays."""
    env = VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1")]))
    with pytest.raises(ValueError, match="VecNormalize"):
        SAC("MlpPolicy", env)
    agent = SAC("MlpPolicy", "Pendulum-v1", buffer_size=10)
    before = agent.env
    with pytest.raises(ValueError, match="VecNormalize"):
        agent.set_env(env)
    assert agent.env is before and agent.get_vec_normalize_env() is None
    agent.save(tmp_path / "agent.zip")
    with pytest.raises(ValueError, match="VecNormalize"):
        SAC.load(tmp_path / "agent.zip", env=env)


class Normalised(torch.nn.Sequential):
    """An encoder with running statistics."""

    out_features = 8

    def __init__(self, in_shape):
        super().__init__(torch.nn.BatchNorm1d(in_shape[-1]), torch.nn.Linear(in_shape[-1], 8))


def test_the_target_has_the_running_statistics_of_its_encoder(small, monkeypatch):
    monkeypatch.setitem(registry._ENCODERS, "normalised", Normalised)
    base = small(encoder="normalised", method="buffer", steps=80)
    config = dataclasses.replace(base, learner=dataclasses.replace(base.learner, encoder_training="scratch"))
    model = make_agent(config, make_env(config))
    before = [buffer.clone() for buffer in model.critic.buffers()]
    model.learn(80)
    for old, online, target in zip(before, model.critic.buffers(), model.critic_target.buffers(), strict=True):
        assert torch.equal(online, target) and not torch.equal(old, online)
