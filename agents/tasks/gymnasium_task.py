"""A task from any Gymnasium environment."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from agents.tasks.actions import check_actions, is_unit
from agents.tasks.contract import Task, View
from agents.tasks.replayed import Replayed
from shaping.goals import GoalSet, dict_goals
from shaping.success import Success
from shaping.success.play import Play
from shaping.success.reached import Reached, goal_test
from shaping.success.sparse import SparseSuccess


def gymnasium_task(
    make: Callable[..., gym.Env],
    play: Callable[..., gym.Env] | None = None,
    *,
    goals: GoalSet | None = None,
    reached: Reached | None = None,
    success: Success | None = None,
    demonstrations: Path | str | None = None,
    estimator: Path | str | None = None,
    estimators: Mapping[str, Path | str] | None = None,
    obs: str = "state",
    encoder: str = "identity",
    settings: Mapping[str, Any] | None = None,
    meaning: str = "",
    action_meaning: str = "",
) -> Task:
    """Make the sparse task of an environment: reward 1 at its first success, where the episode ends (`SparseSuccess`).

    Observations in a dictionary are flattened by Gymnasium's `FlattenObservation`; the agent sees float32 and acts in
    [−1, 1], which is rescaled to the bounds of the environment. Demonstrations have the actions of the environment.

    Args:
        make: Makes the environment: ``make(render_mode=…)``, for instance ``partial(gymnasium.make, "MyTask-v0")``. It
            has a time limit, and actions in a bounded Box of one axis.
        play: Makes the environment in which the prior is learned: the same observations and actions, goals that vary,
            and no obstacles. None without a prior of its own.
        goals: Goal set of the observations; default: `dict_goals` of a GoalEnv, else none, and then no potential.
        reached: Distance, in the metric of the goal set, within which a goal is reached, or a function of the
            differences (`shaping.success.reached.goal_test`); default: `compute_reward` of a GoalEnv.
        success: Key of `info`, or function of it, that tells the success of a step; default: see `SparseSuccess`.
        demonstrations: File of demonstrations.
        estimator: File of Ṽ_g.
        estimators: Files of Ṽ_g that were made with other encoders, by encoder.
        obs: Name of the observation, as in demonstrations and for ``--obs``.
        encoder: Encoder that is used by default.
        settings: Defaults of ``agents.train`` for this task, such as ``{"potential.radius": 0.5}``.
        meaning: Columns, units and frame of an observation, in a line.
        action_meaning: Columns, units and frame of an action, in a line.

    Raises:
        ValueError: The environment has no time limit, or no such actions; the goal set does not fit; or `settings` are
            no dictionary.
    """
    if not isinstance(settings or {}, Mapping):
        raise ValueError(f"settings are {settings!r:.80}; give a dictionary, such as {{'potential.radius': 0.5}}")
    with closing(make(render_mode=None)) as env:
        bounds: Any = env.action_space
        flat: Any = _flat(env, success)
        is_goal_env = isinstance(env.unwrapped.observation_space, spaces.Dict) and hasattr(
            env.unwrapped, "compute_reward"
        )
        if goals is None and is_goal_env:
            goals = dict_goals(env.unwrapped.observation_space)
        if goals is not None and flat.observation_space.shape != goals.observation_shape:
            raise ValueError(
                f"observations have shape {flat.observation_space.shape}, but the goals are for "
                f"{goals.observation_shape}"
            )
        test = None
        if goals is not None and reached is not None:
            test = goal_test(goals, reached, env)
        elif goals is not None and is_goal_env:
            with suppress(ValueError):  # where it does not tell, `Play` refuses, with its reason
                test = goal_test(goals, None, env)

    def make_play(**_: Any) -> gym.Env:
        assert play is not None and goals is not None
        return Play(_flat(play(render_mode=None), lambda info: False), goals, test)

    view = View(
        flat.observation_space,
        encoder,
        goals,
        None if estimator is None else Path(estimator),
        meaning,
        test,
        estimators={name: Path(file) for name, file in (estimators or {}).items()},
    )
    return Task(
        make=lambda obs, grids, render_mode: _flat(make(render_mode=render_mode), success),
        views={obs: view},
        make_play=None if play is None or goals is None else make_play,
        demonstrations={} if demonstrations is None else {1: Path(demonstrations)},
        action_space=flat.action_space,
        action_bounds=(bounds.low, bounds.high),
        action_meaning=action_meaning,
        settings=settings or {},
    )


def _flat(env: gym.Env, success: Success | None) -> gym.Env:
    """Return the sparse task with flat observations of 32 bits, and actions in [−1, 1]."""
    bounds: Any = env.action_space
    check_actions(bounds)
    env = Replayed(SparseSuccess(env, success))
    if isinstance(env.observation_space, spaces.Dict | spaces.Tuple):
        env = gym.wrappers.FlattenObservation(env)
    if env.observation_space.dtype != np.float32:
        with warnings.catch_warnings():  # Gymnasium's, that the bounds of the space lose digits
            warnings.simplefilter("ignore", UserWarning)
            env = gym.wrappers.DtypeObservation(env, np.float32)
    if not is_unit((bounds.low, bounds.high)):
        env = gym.wrappers.RescaleAction(env, np.float32(-1.0), np.float32(1.0))
    return env
