"""Every pair of save and load that Stable-Baselines3 offers, on the project's classes."""

import numpy as np
import pytest
import torch
from stable_baselines3 import SAC as StockSAC
from stable_baselines3 import TD3
from stable_baselines3.common.env_util import make_vec_env

import assets
from agents import SAC
from agents.methods.shaped_sac import make_agent
from agents.prior.config import GoalLearnerConfig, PretrainConfig
from agents.prior.learner import make_goal_learner, make_play
from agents.replay.shaped import ShapedReplayBuffer
from agents.runs.policy import load_policy
from agents.sac.policy import SharedActor, SharedEncoderPolicy
from agents.tasks import make_env


def potential(observations, success):
    return np.where(success, 1.0, observations.reshape(len(observations), -1).mean(axis=1)).astype(np.float32)


def assert_same_batches(a, b):
    for x, y in zip(a.sample(40), b.sample(40), strict=True):
        assert (x is None and y is None) or torch.equal(x, y)


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_the_policy_of_a_run(obs, tmp_path):
    policy, _ = load_policy(assets.path(f"policies/push-slot-1-{obs}"))
    seen = np.random.default_rng(0).normal(0, 0.1, (3, *policy.observation_space.shape)).astype(np.float32)
    expected, _ = policy.predict(seen, deterministic=True)
    policy.save(tmp_path / "policy.pt")
    policy.actor.save(tmp_path / "actor.pt")
    for kind, name in ((SharedEncoderPolicy, "policy.pt"), (SharedActor, "actor.pt")):
        loaded = kind.load(tmp_path / name, device="cpu")
        np.testing.assert_array_equal(loaded.predict(seen, deterministic=True)[0], expected)


def test_a_frozen_encoder_stays_frozen(small, tmp_path):
    policy = make_agent(small("pointcloud"), make_env(small("pointcloud"))).policy
    assert policy.frozen
    policy.save(tmp_path / "policy.pt")
    loaded = SharedEncoderPolicy.load(tmp_path / "policy.pt", device="cpu")
    assert loaded.frozen and not any(p.requires_grad for p in loaded.actor.features_extractor.parameters())


@pytest.mark.parametrize("truncate", [True, False])
def test_replay_buffer_with_demonstrations_and_features(small, tmp_path, truncate):
    config = small("pointcloud")
    model = make_agent(config, make_env(config)).learn(60)
    model.save(tmp_path / "model.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    loaded = SAC.load(tmp_path / "model.zip", env=make_env(config), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer.pkl", truncate_last_traj=truncate)
    assert_same_batches(model.replay_buffer, loaded.replay_buffer)
    assert loaded.replay_buffer.demonstrations.size() > 0
    loaded.learn(10, reset_num_timesteps=False)
    assert loaded.replay_buffer.size() == 70


def test_the_goal_learner(tmp_path):
    config = PretrainConfig(steps=100, device="cpu", learner=GoalLearnerConfig(learning_starts=20, batch_size=16))
    model = make_goal_learner(config, make_play(config)).learn(40)
    model.save(tmp_path / "model.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    loaded = SAC.load(tmp_path / "model.zip", env=make_play(config), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer.pkl")
    assert_same_batches(model.replay_buffer, loaded.replay_buffer)
    loaded.learn(10, reset_num_timesteps=False)
    assert loaded.replay_buffer.size() == 50


@pytest.mark.parametrize("algorithm", [SAC, StockSAC, TD3])
def test_vectorised_with_the_shaped_buffer(algorithm, tmp_path):
    settings = {
        "learning_starts": 10,
        "batch_size": 16,
        "buffer_size": 100,
        "gradient_steps": 2,
        "policy_kwargs": {"net_arch": [16]},
        "replay_buffer_class": ShapedReplayBuffer,
        "replay_buffer_kwargs": {"potential": potential},
    }
    model = algorithm("MlpPolicy", make_vec_env("Pendulum-v1", n_envs=2), **settings)
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(60)
    assert not any(torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
    model.save(tmp_path / "model.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    loaded = algorithm.load(tmp_path / "model.zip", env=make_vec_env("Pendulum-v1", n_envs=2))
    loaded.load_replay_buffer(tmp_path / "buffer.pkl")
    assert_same_batches(model.replay_buffer, loaded.replay_buffer)
    observations = np.ones((2, 3), np.float32)
    expected, _ = model.predict(observations, deterministic=True)
    np.testing.assert_array_equal(loaded.predict(observations, deterministic=True)[0], expected)
    loaded.learn(10, reset_num_timesteps=False)
    assert loaded.replay_buffer.size() == 35
