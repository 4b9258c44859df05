"""Learner of the prior's goal policy and its critics: SAC with hindsight goals."""

from typing import Any

import gymnasium as gym
from stable_baselines3.common.monitor import Monitor

from agents.methods.encoder import encoder_info
from agents.prior.config import GoalLearnerConfig, OfflineConfig, PretrainConfig, PriorConfig
from agents.replay import HindsightReplayBuffer
from agents.sac import SAC
from agents.sac.device import resolve_device
from agents.sac.policy import SharedEncoderPolicy, policy_settings
from agents.tasks import get_task
from shaping.goals import GoalSet

HIDDEN = (256, 256)  # hidden layers of goal policy, critics and value head


def make_play(config: PriorConfig) -> gym.Env:
    """Make the environment in which the prior is learned, with the prior's goals."""
    make, reached = get_task(config.task).make_play, config.learner.success_speed
    if make is None:
        raise ValueError(
            f"task {config.task!r} has no environment in which a prior is learned; give it make_play=, or "
            "gymnasium_task play= and goals"
        )
    return make(obs=config.obs, success_speed=reached, goal_speed=config.goal_speed)


def make_goal_learner(config: PretrainConfig, env: gym.Env) -> SAC:
    """Make the learner of a pre-training (`goal_learner`)."""
    encoder = encoder_info(config).name
    return goal_learner(
        env,
        config.goals,
        encoder,
        config.learner,
        config.steps,
        config.goal_speed,
        config.nearby,
        config.seed,
        config.device,
    )


def goal_learner(
    env: gym.Env,
    goals: GoalSet,
    encoder: str,
    learner: GoalLearnerConfig,
    steps: int,
    goal_speed: float = 0.0,
    nearby: float = 0.0,
    seed: int = 0,
    device: str = "auto",
) -> SAC:
    """Make SAC with hindsight goals.

    The critic's target has no entropy bonus and is clipped to [0, 1], so that the value is γ to the power of the number
    of steps.

    Args:
        env: Environment with `goal_reward`, and `achieved_goal` and `desired_goal` in `info`.
        goals: Goal set of its observations.
        encoder: Name of a registered encoder.
        learner: Settings.
        steps: Environment steps of the training, the size of the replay buffer.
        goal_speed: Largest velocity of hindsight goals.
        nearby: Share of the hindsight goals that are drawn around the achieved one.
        seed: Seed of weights, exploration and sampling.
        device: cpu, cuda or auto.
    """
    return goal_sac(
        env,
        encoder,
        learner,
        seed,
        device,
        buffer_size=steps,
        gradient_steps=learner.gradient_steps,
        learning_starts=learner.learning_starts,
        replay_buffer_class=HindsightReplayBuffer,
        replay_buffer_kwargs={
            "goals": goals,
            "compute_reward": env.get_wrapper_attr("goal_reward"),
            "goal_speed": goal_speed,
            "relabelled": learner.relabelled,
            "nearby": nearby,
            "nearby_steps": learner.nearby_steps,
            "seed": seed,
        },
    )


def goal_sac(
    env: gym.Env,
    encoder: str,
    learner: GoalLearnerConfig | OfflineConfig,
    seed: int,
    device: str,
    **settings: Any,
) -> SAC:
    """Make SAC whose value is γ to the power of the number of steps (`goal_learner`); `settings` are further ones."""
    return SAC(
        SharedEncoderPolicy,
        Monitor(env),
        learning_rate=learner.learning_rate,
        batch_size=learner.batch_size,
        gamma=learner.gamma,
        ent_coef=learner.ent_coef,
        target_bounds=(0.0, 1.0),
        backup_entropy=False,
        policy_kwargs=policy_settings(encoder, HIDDEN),
        seed=seed,
        device=resolve_device(device),
        **settings,
    )
