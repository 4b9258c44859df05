"""Demonstrations of a training, and their storage as transitions."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from agents.config import TrainConfig
from agents.replay import ShapedReplayBuffer
from agents.sac import SAC
from agents.tasks import get_task, make_env
from agents.tasks.actions import to_agent
from envs.demonstrations import PUSH_SHAPES, Trajectory, load_demonstrations
from envs.demonstrations.success import Success
from envs.demonstrations.trajectory import check_length
from envs.push.success import push_success


def load_trajectories(config: TrainConfig, env: gym.Env) -> list[Trajectory]:
    """Read the demonstrations, each up to its first success; by default the shipped file for the number of grids.

    An observation that a demonstration lacks is made from its states of the simulator, if the task can do that.

    Raises:
        ValueError: The demonstrations are invalid or lack the configured observation, or the filter key is unknown.
    """
    task = get_task(config.task)
    view = task.view(config.obs)

    shapes: dict[str, tuple[int | None, ...]] = {config.obs: view.space.shape}
    if hasattr(env.unwrapped, "goal_reward"):
        shapes |= dict(PUSH_SHAPES)
    found = load_demonstrations(
        _demonstrations(config),
        config.obs,
        config.filter_key,
        shapes=shapes,
        success=_success(config, env),
        actions=task.bounds,
        replayed=view.from_states is not None,
    )
    return [
        trajectory
        if trajectory.actions is None
        else replace(trajectory, actions=to_agent(trajectory.actions, task.bounds))
        for trajectory in _observed(found, config)
    ]


def _success(config: TrainConfig, env: gym.Env) -> Success | None:
    """Return the goal set by which demonstrations are judged; None if the observation has none."""
    view, base = get_task(config.task).view(config.obs), env.unwrapped
    if hasattr(base, "goal_reward"):  # of this project's task, which judges by all that is recorded
        return push_success(base.goal_reward)
    if view.goals is None or view.reached is None:
        return None
    goals, reached = view.goals, view.reached
    return lambda observations: reached(goals.extract(observations[config.obs]))


def _observed(trajectories: list[Trajectory], config: TrainConfig) -> list[Trajectory]:
    """Return demonstrations with the configured observation, made from their states where they lack it.

    Raises:
        ValueError: The states are those of another simulation, or the last one was not recorded.
    """
    from_states = get_task(config.task).view(config.obs).from_states
    if from_states is None or all(config.obs in trajectory.observations for trajectory in trajectories):
        return trajectories
    path, observed = _demonstrations(config), []
    with closing(make_env(config)) as env:
        for trajectory in trajectories:
            if config.obs not in trajectory.observations:
                rows = from_states(env, trajectory)
                check_length(rows, trajectory.horizon + 1, f"{path}: {trajectory.name}: states")
                print(f"{path}: {trajectory.name}: {len(rows)} observations {config.obs!r} made from its states")
                trajectory = replace(trajectory, observations=trajectory.observations | {config.obs: rows})
            observed.append(trajectory)
    return observed


def _demonstrations(config: TrainConfig) -> Path:
    path = config.demonstrations or get_task(config.task).demonstrations.get(config.grids)
    if path is None:
        raise ValueError(f"task {config.task!r} has no demonstrations; give a file by --demonstrations")
    return path


def refuse_failed(trajectories: list[Trajectory], config: TrainConfig, env: gym.Env) -> None:
    """Check that every demonstration ends in success, because its last transition is stored as a success.

    It is judged by the goal set of the task, as its end is, and by that of the configured observation. What neither
    decides, as images alone, is taken for a success.

    Raises:
        ValueError: A demonstration does not end in success; the message names it.
    """
    view, success = get_task(config.task).view(config.obs), _success(config, env)
    for trajectory in trajectories:
        observations = trajectory.observations
        failed, apart = success is not None and success(observations)[-1] == 0, ""  # NaN is not known
        if view.goals is not None and view.reached is not None:
            offset = view.goals.extract(observations[config.obs][-1:])
            failed = failed or not view.reached(offset).all()
            apart = f", {view.goals.length(offset).item():.3f} from the goal"
        if failed:
            raise ValueError(
                f"{_demonstrations(config)}: {trajectory.name} is no success at its end{apart}; record it until the "
                "goal is reached and kept"
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
