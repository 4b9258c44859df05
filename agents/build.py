"""Build what a configuration names: environment, estimator, demonstrations, potential and agent."""

import dataclasses
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import assets
import envs  # noqa: F401 (registers the tasks)
from agents.collector import CollectedSteps, Collector
from agents.config import METHODS, LearnerConfig, TrainConfig
from agents.features import EncoderExtractor, SharedEncoderPolicy
from agents.guide import Guide
from agents.hardware import resolve_device, resolve_precision, works_beside
from agents.replay import ShapedReplayBuffer
from agents.sac import SAC
from envs.demonstrations import Trajectory, load_demonstrations, warn_if_longer
from perception.registry import available_encoders, make_encoder
from shaping.goals import make_goals
from shaping.potential import Potential
from shaping.reward import value_bounds
from shaping.value import ValueEstimator

ENVIRONMENTS = {"push-slot": "PushSlot-v0"}
SEEN_AT_GOAL = 0.05  # farthest from the goal that the mean of the seen points may be at a success [m]
DEFAULT_ENCODERS = {"state": "state", "pointcloud": "pointnet"}


def make_env(config: TrainConfig, render_mode: str | None = None) -> gym.Env:
    """Build the task with the configured observation."""
    return gym.make(ENVIRONMENTS[config.task], obs=config.obs, grids=config.grids, render_mode=render_mode)


def encoder_name(config: Any) -> str:
    """Name of the encoder that a training or a pre-training is configured with.

    Raises:
        ValueError: It is not registered; lists those that are.
    """
    name = DEFAULT_ENCODERS[config.obs] if config.encoder is None else config.encoder
    if name not in available_encoders():
        raise ValueError(
            f"unknown encoder {name!r}; registered encoders: {', '.join(available_encoders())}; "
            "choose one of them by --encoder, or register it"
        )
    return name


def stored_features(config: TrainConfig) -> int:
    """Number of features that the replay buffer holds of each observation: those of a pre-trained, frozen encoder."""
    encoder: Any = make_encoder(encoder_name(config), in_shape=make_goals(config.obs).observation_shape)
    frozen = config.learner.encoder_training == "frozen" and _is_pretrained(config)
    return encoder.out_features if frozen else 0


def load_estimator(config: TrainConfig) -> ValueEstimator:
    """Read Ṽ_g, the shipped one by default.

    Raises:
        FileNotFoundError: No such file.
        ValueError: Not an estimator, or one for another observation.
    """
    path = config.estimator or assets.path(f"estimators/push-plane-{config.obs}.pt")
    return ValueEstimator.load(path, observation=config.obs)


def check_encoder(config: TrainConfig) -> None:
    """Check that the estimator has the encoder that the policy's is to start from.

    Raises:
        FileNotFoundError: No such estimator.
        ValueError: It has another encoder, or is none.
    """
    if not _is_pretrained(config):
        return
    made_with, name = load_estimator(config).config["encoder"], encoder_name(config)
    if made_with != name:
        raise ValueError(
            f"--learner.encoder-training {config.learner.encoder_training}: the estimator was made with encoder "
            f"{made_with!r}, not {name!r}; choose scratch, or an --estimator that agents.pretrain made with {name!r}"
        )


def load_trajectories(config: TrainConfig, env: gym.Env) -> list[Trajectory]:
    """Read the demonstrations, the shipped ones for the number of grids by default, each up to its first success.

    Raises:
        ValueError: Invalid demonstrations, or without the configured observation; no such filter key.
    """
    base: Any = env.unwrapped
    return load_demonstrations(
        _demonstrations(config), obs=config.obs, filter_key=config.filter_key, goal_reward=base.goal_reward
    )


def _demonstrations(config: TrainConfig) -> Path:
    return config.demonstrations or assets.path(f"demonstrations/{config.task}-{config.grids}.hdf5")


def make_potential(config: TrainConfig, estimator: ValueEstimator, demonstrations: Sequence[np.ndarray]) -> Potential:
    """Compose Φ of estimator and demonstrated observations.

    Raises:
        ValueError: The estimator's values are of another discount.
    """
    if config.learner.gamma != estimator.gamma:
        raise ValueError(
            f"--learner.gamma is {config.learner.gamma}, but the estimator counts steps by {estimator.gamma}; "
            "give that, or an --estimator that was trained with another"
        )
    return Potential(estimator, demonstrations, gamma=config.learner.gamma, **dataclasses.asdict(config.potential))


def make_agent(config: TrainConfig, *environments: gym.Env) -> SAC:
    """Compose learner, replay buffer, potential and guide.

    Args:
        config: Of the training.
        *environments: To be learned in, at least one.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: Names, files or settings that do not fit together.
    """
    method, learner, env = METHODS[config.method], config.learner, environments[0]
    device = resolve_device(config.device)
    resolve_precision(learner.precision, device, "--learner.precision")
    torch.set_num_threads(config.threads)
    check_encoder(config)
    pretrained = _is_pretrained(config)
    estimator = load_estimator(config) if method.potential or pretrained else None
    trajectories = load_trajectories(config, env) if method.potential or method.buffer else []
    _refuse_failed(trajectories, config, env)
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
    model = SAC(
        SharedEncoderPolicy,
        DummyVecEnv([partial(Monitor, env) for env in environments]),
        learning_rate=learner.learning_rate,
        buffer_size=min(learner.buffer_size, config.environment_steps),
        learning_starts=learner.learning_starts,
        batch_size=learner.batch_size,
        gamma=learner.gamma,
        tau=learner.tau,
        actor_tau=learner.actor_tau,
        train_freq=learner.block // len(environments),
        gradient_steps=round(learner.update_ratio * learner.block),
        ent_coef=learner.ent_coef,
        target_bounds=_target_bounds(learner, potential),
        entropy_in_target=learner.entropy_in_target,
        precision=learner.precision,
        annealing_steps=learner.annealing_steps if method.annealing else 0,
        replay_buffer_class=ShapedReplayBuffer,
        replay_buffer_kwargs=shaping,
        policy_kwargs={
            "features_extractor_class": EncoderExtractor,
            "features_extractor_kwargs": {"encoder": encoder_name(config)},
            "net_arch": list(learner.net_arch),
            "frozen": pretrained and learner.encoder_training == "frozen",
            "optimizer_kwargs": {"fused": True},
        },
        seed=config.seed,
        device=device,
    )
    model.policy.set_training_mode(False)  # features of demonstrations are stored before anything is learned
    buffer: Any = model.replay_buffer
    if pretrained and estimator is not None:
        _start_encoder(model, estimator)
    if method.buffer:
        demonstrated = _demonstrated(config, model, trajectories, shaping)
        buffer.set_demonstrations(demonstrated, learner.demonstration_share)
    if potential is not None and estimator is not None and learner.guided_share > 0:
        model.guide = Guide(
            potential, estimator, learner.guided_share, learner.guide_noise, config.seed, learner.guide_decay
        )
    return model


def collect_beside(model: SAC, config: TrainConfig) -> CollectedSteps:
    """Let a copy of the policy collect what `model` learns from, in a process of its own where there is a core for it.

    The model's environments are the copy's from now on.
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
    model.collected = CollectedSteps(collector, model, works_beside(config.parallel))
    return model.collected


def _target_bounds(learner: LearnerConfig, potential: Potential | None) -> tuple[float, float] | None:
    """The configured range of targets; by default that of the values that can be reached."""
    if learner.target_bounds is not None or learner.entropy_in_target:
        return learner.target_bounds
    largest, terminal = (0.0, 0.0) if potential is None else (potential.largest, potential.terminal)
    scaled = [learner.reward_scale * bound for bound in value_bounds(learner.gamma, largest, terminal)]
    return min(scaled), max(scaled)


def revision() -> str:
    """Describe the source: `git describe` of a checkout, else "unknown"."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace").strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _refuse_failed(trajectories: list[Trajectory], config: TrainConfig, env: gym.Env) -> None:
    """Refuse a demonstration that is no success at its end: it would be stored, and valued, as one."""
    base: Any = env.unwrapped
    for trajectory in trajectories:
        state, cloud = (trajectory.observations.get(name) for name in ("state", "pointcloud"))
        if state is not None:
            away, success = state[-1, 4:6], base.goal_reward(state[-1, 4:8], np.zeros(4)) > 0
        else:
            assert cloud is not None
            away = cloud[-1, :, 2:].mean(axis=0)
            success = np.hypot(*away) < SEEN_AT_GOAL
        if not success:
            raise ValueError(
                f"{_demonstrations(config)}: {trajectory.name} is no success at its end, {np.hypot(*away):.3f} m from "
                "the goal; record it until the puck rests in the goal"
            )


def _is_pretrained(config: TrainConfig) -> bool:
    """Whether the policy's encoder starts from the estimator's: not from scratch, and it has weights."""
    if config.learner.encoder_training == "scratch":
        return False
    encoder = make_encoder(encoder_name(config), in_shape=make_goals(config.obs).observation_shape)
    return any(True for _ in encoder.parameters())


def _start_encoder(model: SAC, estimator: ValueEstimator) -> None:
    """Start the policy's encoder from the estimator's; of a frozen one, store the features."""
    policy: Any = model.policy
    policy.load_encoder(estimator.encoder)
    if policy.frozen:
        _store_features(model.replay_buffer, model)


def _store_features(buffer: Any, model: SAC) -> None:
    extractor = model.actor.features_extractor
    buffer.store_features(extractor, extractor.features_dim)


def _demonstrated(
    config: TrainConfig, model: SAC, trajectories: list[Trajectory], shaping: dict[str, Any]
) -> ShapedReplayBuffer:
    """Store demonstrations like any transitions: reward 1 and the terminal flag at their ends."""
    if any(t.actions is None for t in trajectories):
        raise ValueError(
            f"method {config.method!r} puts demonstrations in the replay buffer, but some have no actions; "
            "record them with actions, or choose 'potential+annealing'"
        )
    steps = sum(t.horizon for t in trajectories)
    buffer = ShapedReplayBuffer(steps, model.observation_space, model.action_space, device=model.device, **shaping)
    if model.replay_buffer.features is not None:  # type: ignore[union-attr]
        _store_features(buffer, model)
    for trajectory in trajectories:
        states, actions = trajectory.observations[config.obs], trajectory.actions
        assert actions is not None
        for step, action in enumerate(actions):
            last = np.array([step == len(actions) - 1])
            info = {"is_success": last.item()}
            buffer.add(states[step][None], states[step + 1][None], action[None], last.astype(np.float32), last, [info])
    return buffer
