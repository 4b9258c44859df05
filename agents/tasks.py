"""Registry of tasks: environments, goals, observation spaces and shipped files by name.

A registered task is available in every command::

    register_task("my-push", dataclasses.replace(get_task("push-slot"), make=make_my_push))
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import assets
import envs  # noqa: F401 (registers the environments)
from shaping.goals import CloudGoals, GoalSet, StateGoals
from shaping.observed_goal import ObservedGoal


@dataclass(frozen=True)
class View:
    """Observation type of a task.

    Attributes:
        space: Space of the observations.
        encoder: Name of the encoder that is used by default.
        goals: Goal set of the observations, for a prior and a potential; None without one.
        estimator: Shipped Ṽ_g; None without one.
        meaning: Columns, units and frame of an observation, in a line.
    """

    space: spaces.Box
    encoder: str
    goals: GoalSet | None = None
    estimator: Path | None = None
    meaning: str = ""


@dataclass(frozen=True)
class Task:
    """Environments, observation types and files of a task.

    Attributes:
        make: Makes the environment: `make(obs=…, grids=…, render_mode=…)`.
        views: Observation types by name.
        make_play: Makes the environment in which the prior is learned: `make_play(obs=…, success_speed=…,
            goal_speed=…)`, with `achieved_goal` and `desired_goal` in `info` and `goal_reward` on the
            environment. None without one.
        demonstrations: Shipped demonstrations, by number of grids.
        action_space: Action space of the environment.
        prior: Name of the environment in which the prior is learned, used in file names.
        action_meaning: Columns, units and frame of an action, in a line.
    """

    make: Callable[..., gym.Env]
    views: Mapping[str, View]
    make_play: Callable[..., gym.Env] | None = None
    demonstrations: Mapping[int, Path] = field(default_factory=dict)
    action_space: spaces.Box = field(default_factory=lambda: spaces.Box(-1.0, 1.0, (2,), np.float32))
    prior: str = "play"
    action_meaning: str = ""

    def view(self, obs: str) -> View:
        """Return the observation type of this name.

        Raises:
            ValueError: The task has no such observation type; the message lists those that it has.
        """
        if obs not in self.views:
            raise ValueError(f"--obs: unknown observation {obs!r}; this task has: {', '.join(self.views)}")
        return self.views[obs]


_TASKS: dict[str, Task] = {}


def register_task(name: str, task: Task) -> Task:
    """Register a task under a name.

    Raises:
        ValueError: The name is taken.
    """
    if name in _TASKS:
        raise ValueError(f"a task {name!r} is registered already; choose another name")
    _TASKS[name] = task
    return task


def get_task(name: str) -> Task:
    """Return the task registered under `name`.

    Raises:
        ValueError: There is no such task; the message lists the registered ones.
    """
    if name not in _TASKS:
        own = "; name it on the command line, --task or --imports module:Name, to import it" if ":" in name else ""
        raise ValueError(f"--task: unknown task {name!r}; registered tasks: {', '.join(available_tasks())}{own}")
    return _TASKS[name]


def available_tasks() -> list[str]:
    """Return the names of the registered tasks."""
    return list(_TASKS)


def make_env(config: Any, render_mode: str | None = None) -> gym.Env:
    """Make the environment of a training configuration."""
    return get_task(config.task).make(obs=config.obs, grids=config.grids, render_mode=render_mode)


def make_plane(obs: str, **kwargs: Any) -> gym.Env:
    """Make the obstacle-free plane; success in a cloud is judged by the visible points."""
    env = gym.make("PushPlane-v0", obs=obs, **kwargs)
    return env if obs == "state" else ObservedGoal(env, CloudGoals())


def _push_view(goals: GoalSet, encoder: str, meaning: str) -> View:
    space = spaces.Box(-np.inf, np.inf, goals.observation_shape, np.float32)
    return View(space, encoder, goals, assets.path("estimators") / f"push-plane-{goals.name}.pt", meaning)


register_task(
    "push-slot",
    Task(
        make=partial(gym.make, "PushSlot-v0"),
        views={
            "state": _push_view(
                StateGoals(),
                "state",
                "position [m] and velocity [m/s] of the puck relative to the end effector, then to the goal; xy, world",
            ),
            "pointcloud": _push_view(
                CloudGoals(),
                "pointnet",
                "points on the visible puck relative to the end effector, then to the goal [m]; xy, world",
            ),
        },
        make_play=make_plane,
        demonstrations={grids: assets.path("demonstrations") / f"push-slot-{grids}.hdf5" for grids in (1, 2, 3)},
        prior="push-plane",
        action_meaning="displacement of the end effector in units of 6 cm; xy, world",
    ),
)
