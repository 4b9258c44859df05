"""Learner of the prior's goal policy and its critics: SAC with hindsight goals."""

import gymnasium as gym
from stable_baselines3.common.monitor import Monitor

from agents.methods.encoder import encoder_info
from agents.prior.config import PretrainConfig
from agents.replay import HindsightReplayBuffer
from agents.sac import SAC
from agents.sac.device import resolve_device
from agents.sac.policy import SharedEncoderPolicy, policy_settings
from agents.tasks import get_task

HIDDEN = (256, 256)  # hidden layers of goal policy, critics and value head


def make_play(config: PretrainConfig) -> gym.Env:
    """Make the environment in which the prior is learned, with the prior's goals."""
    make, reached = get_task(config.task).make_play, config.learner.success_speed
    if make is None:
        raise ValueError(f"task {config.task!r} has no environment in which a prior is learned; give it make_play=")
    return make(obs=config.obs, success_speed=reached, goal_speed=config.goal_speed)


def make_goal_learner(config: PretrainConfig, env: gym.Env) -> SAC:
    """Make SAC with hindsight goals.

    The critic's target has no entropy bonus and is clipped to [0, 1], so that the value is γ to the power of the number
    of steps.
    """
    learner = config.learner
    return SAC(
        SharedEncoderPolicy,
        Monitor(env),
        learning_rate=learner.learning_rate,
        buffer_size=config.steps,
        batch_size=learner.batch_size,
        gradient_steps=learner.gradient_steps,
        learning_starts=learner.learning_starts,
        gamma=learner.gamma,
        ent_coef=learner.ent_coef,
        target_bounds=(0.0, 1.0),
        backup_entropy=False,
        replay_buffer_class=HindsightReplayBuffer,
        replay_buffer_kwargs={
            "goals": get_task(config.task).view(config.obs).goals,
            "compute_reward": env.unwrapped.goal_reward,  # type: ignore[attr-defined]
            "goal_speed": config.goal_speed,
            "relabelled": learner.relabelled,
            "nearby": config.nearby,
            "nearby_steps": learner.nearby_steps,
            "seed": config.seed,
        },
        policy_kwargs=policy_settings(encoder_info(config).name, HIDDEN),
        seed=config.seed,
        device=resolve_device(config.device),
    )
