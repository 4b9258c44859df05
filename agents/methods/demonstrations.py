"""Demonstrations of a training, and their storage as transitions."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from agents.config import TrainConfig
from agents.replay import ShapedReplayBuffer
from agents.sac import SAC
from agents.tasks import get_task
from envs.demonstrations import Trajectory, load_demonstrations

SEEN_AT_GOAL = 0.05  # maximum distance between the goal and the mean of the observed points at a success [m]


def load_trajectories(config: TrainConfig, env: gym.Env) -> list[Trajectory]:
    """Read the demonstrations, each up to its first success; by default the shipped file for the number of grids.

    Raises:
        ValueError: The demonstrations are invalid or lack the configured observation, or the filter key is unknown.
    """
    base: Any = env.unwrapped
    return load_demonstrations(
        _demonstrations(config), obs=config.obs, filter_key=config.filter_key, compute_reward=base.goal_reward
    )


def _demonstrations(config: TrainConfig) -> Path:
    path = config.demonstrations or get_task(config.task).demonstrations.get(config.grids)
    if path is None:
        raise ValueError(f"task {config.task!r} has no demonstrations; give a file by --demonstrations")
    return path


def refuse_failed(trajectories: list[Trajectory], config: TrainConfig, env: gym.Env) -> None:
    """Check that every demonstration ends in success, because its last transition is stored as a success.

    Raises:
        ValueError: A demonstration does not end in success; the message names it.
    """
    base: Any = env.unwrapped
    for trajectory in trajectories:
        state, cloud = (trajectory.observations.get(name) for name in ("state", "pointcloud"))
        if state is not None:
            away, success = state[-1, 4:6], base.goal_reward(state[-1, 4:8], np.zeros(4), {}) > 0
        else:
            assert cloud is not None
            away = cloud[-1, :, 2:].mean(axis=0)
            success = np.hypot(*away) < SEEN_AT_GOAL
        if not success:
            raise ValueError(
                f"{_demonstrations(config)}: {trajectory.name} is no success at its end, {np.hypot(*away):.3f} m from "
                "the goal; record it until the puck rests in the goal"
            )


def store_features(buffer: Any, model: SAC) -> None:
    """Make a replay buffer store the output of the agent's frozen encoder for each observation."""
    extractor = model.actor.features_extractor
    buffer.store_features(extractor, extractor.features_dim)


def demonstrated_rows(
    config: TrainConfig, model: SAC, trajectories: list[Trajectory], shaping: dict[str, Any]
) -> ShapedReplayBuffer:
    """Store demonstrations in a replay buffer, with reward 1 and the terminal flag in the last transition of each.

    Raises:
        ValueError: A demonstration has no actions.
    """
    if any(t.actions is None for t in trajectories):
        raise ValueError(
            f"method {config.method!r} puts demonstrations in the replay buffer, but some have no actions; "
            "record them with actions, or choose 'potential+annealing'"
        )
    steps = sum(t.horizon for t in trajectories)
    buffer = ShapedReplayBuffer(steps, model.observation_space, model.action_space, device=model.device, **shaping)
    if model.replay_buffer.features is not None:  # type: ignore[union-attr]
        store_features(buffer, model)
    for trajectory in trajectories:
        states, actions = trajectory.observations[config.obs], trajectory.actions
        assert actions is not None
        for step, action in enumerate(actions):
            last = np.array([step == len(actions) - 1])
            info = {"is_success": last.item()}
            buffer.add(states[step][None], states[step + 1][None], action[None], last.astype(np.float32), last, [info])
    return buffer
