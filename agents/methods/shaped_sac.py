"""SAC for the methods of the paper's table: shaped reward, demonstrations in the replay buffer, annealed discount."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.collecting.collector import CollectedSteps, Collector
from agents.collecting.worker import works_beside
from agents.config import METHODS, TrainConfig
from agents.imitation.cloning import BehaviouralCloning
from agents.methods.demonstrations import demonstrated_rows, load_trajectories, refuse_failed, store_features
from agents.methods.encoder import check_encoder, encoder_info, is_pretrained
from agents.methods.imitation import make_reward
from agents.methods.potential import load_estimator, make_potential, target_bounds
from agents.replay import ShapedReplayBuffer
from agents.sac import SAC
from agents.sac.device import resolve_device, resolve_precision
from agents.sac.guide import Guide
from agents.sac.policy import SharedEncoderPolicy, policy_settings
from agents.tasks import get_task
from envs.demonstrations import warn_if_longer


def make_agent(config: TrainConfig, *environments: gym.Env) -> SAC:
    """Make an agent with its replay buffer, potential and guide.

    Args:
        config: Configuration of the training.
        *environments: Training environments, at least one.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: Names, files or settings do not fit together.
    """
    method, learner, env = METHODS[config.method], config.learner, environments[0]
    device = resolve_device(config.device)
    resolve_precision(learner.precision, device, "--learner.precision")
    torch.set_num_threads(config.threads)
    check_encoder(config)
    pretrained = is_pretrained(config)
    estimator = load_estimator(config) if method.potential or pretrained else None
    trajectories = load_trajectories(config, env) if method.uses_demonstrations else []
    refuse_failed(trajectories, config, env)
    if trajectories:
        warn_if_longer(trajectories, env.get_wrapper_attr("horizon"))
    shown = [t.observations[config.obs] for t in trajectories]
    potential = make_potential(config, estimator, shown) if method.potential and estimator else None
    shaping = {
        "potential": potential,
        "gamma": learner.gamma,
        "reward_scale": learner.reward_scale,
        "n_steps": learner.n_steps,
        "seed": config.seed,
    }
    model = (SAC if method.critic else BehaviouralCloning)(
        SharedEncoderPolicy,
        DummyVecEnv([partial(Monitor, env) for env in environments]),
        learning_rate=learner.learning_rate,
        buffer_size=min(learner.buffer_size, config.environment_steps),
        learning_starts=learner.learning_starts if method.critic else 0,
        batch_size=learner.batch_size,
        gamma=learner.gamma,
        tau=learner.tau,
        actor_tau=learner.actor_tau,
        train_freq=learner.block // len(environments),
        gradient_steps=round(learner.update_ratio * learner.block),
        ent_coef=learner.ent_coef,
        target_bounds=target_bounds(learner, potential, bounded=not method.imitation),
        target_entropy=learner.target_entropy * env.action_space.shape[0],  # type: ignore[index]
        backup_entropy=learner.backup_entropy,
        precision=learner.precision,
        annealing_steps=learner.annealing_steps if method.annealing else 0,
        replay_buffer_class=ShapedReplayBuffer,
        replay_buffer_kwargs=shaping,
        policy_kwargs=policy_settings(
            encoder_info(config).name, learner.net_arch, frozen=pretrained and learner.encoder_training == "frozen"
        ),
        seed=config.seed,
        device=device,
    )
    model.policy.set_training_mode(False)  # the features of demonstrations are computed before training starts
    buffer: Any = model.replay_buffer
    if pretrained and estimator is not None:
        policy: Any = model.policy
        policy.load_encoder(estimator.encoder)
        if policy.frozen:
            store_features(buffer, model)
    if method.demonstrations:
        demonstrated = demonstrated_rows(config, model, trajectories, shaping)
        share = learner.demonstration_share if method.buffer else 0.0
        buffer.set_demonstrations(demonstrated, share, alternate=method.imitation == "adril")
    if method.imitation and method.critic:
        buffer.reward = make_reward(method.imitation, config, model, env.get_wrapper_attr("horizon"))
        model.replay_buffer_kwargs["reward"] = buffer.reward
    if method.guide and potential is not None and estimator is not None:
        model.guide = Guide(
            potential, estimator, learner.guided_share, learner.guide_noise, config.seed, learner.guide_decay
        )
    return model


def collect_beside(model: SAC, config: TrainConfig) -> CollectedSteps:
    """Make a copy of the policy collect the transitions for `model`, in a worker process if a second core is available.

    From then on, only the copy steps the environments of the model.
    """
    assert model.env is not None
    spaces = model.observation_space, model.action_space
    shaping = model.replay_buffer_kwargs
    recorder = ShapedReplayBuffer(2 * model.n_envs, *spaces, device="cpu", n_envs=model.n_envs, **shaping)
    collector = Collector(model, recorder, config.seed)
    if model.replay_buffer.features is not None:  # type: ignore[union-attr]
        extractor = collector.actor.features_extractor
        recorder.store_features(extractor, extractor.features_dim)
    model._last_obs = collector.observations
    model._last_episode_starts = np.ones(model.n_envs, bool)
    opengl = get_task(config.task).view(config.obs).opengl
    model.collected = CollectedSteps(collector, model, works_beside(config.parallel, opengl))
    return model.collected
