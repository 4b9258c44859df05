"""The contract of a task: environments, goals, observation types and files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from envs.demonstrations import Trajectory
from envs.demonstrations.trajectory import Bounds
from shaping.goals import GoalSet
from shaping.success.reached import GoalTest

VERSION = 1
"""Version of the contract."""


@dataclass(frozen=True)
class View:
    """Observation type of a task.

    Attributes:
        space: Space of the observations.
        encoder: Name of the encoder that is used by default.
        goals: Goal set of the observations, for a prior and a potential; None without one.
        estimator: Shipped Ṽ_g, made with `encoder`; None without one.
        meaning: Columns, units and frame of an observation, in a line.
        reached: Tells from the differences of achieved and desired goals (B, goal) whether a demonstration ends in the
            goal set; None if it is taken for granted.
        estimators: Shipped Ṽ_g that were made with other encoders, by encoder.
        from_states: Makes the observations (H + 1, …) of a demonstration that lacks them from its states of the
            simulator, which it sets in an environment: `from_states(env, trajectory)`; None if they must be recorded.
        opengl: Whether observations are drawn by OpenGL, which does not survive a fork: a training then collects and
            evaluates in the process of the learner.
    """

    space: spaces.Box
    encoder: str
    goals: GoalSet | None = None
    estimator: Path | None = None
    meaning: str = ""
    reached: GoalTest | None = None
    estimators: Mapping[str, Path] = field(default_factory=dict)
    from_states: Callable[[gym.Env, Trajectory], np.ndarray] | None = None
    opengl: bool = False

    def estimator_of(self, encoder: str | None) -> Path | None:
        """Return the shipped Ṽ_g of an encoder, by default that of `encoder`; where there is none, `estimator`."""
        return self.estimator if encoder is None else self.estimators.get(encoder, self.estimator)


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
        prior: Name of the environment in which the prior is learned, used in file names; default: the task's.
        action_meaning: Columns, units and frame of an action, in a line.
        action_bounds: Bounds of the actions in demonstrations, (A,) each; default: those of `action_space`.
        settings: Defaults of agents.train for this task by name, such as "potential.radius".
        version: Version of this contract for which the task was written.
    """

    make: Callable[..., gym.Env]
    views: Mapping[str, View]
    make_play: Callable[..., gym.Env] | None = None
    demonstrations: Mapping[int, Path] = field(default_factory=dict)
    action_space: spaces.Box = field(default_factory=lambda: spaces.Box(-1.0, 1.0, (2,), np.float32))
    prior: str = ""
    action_meaning: str = ""
    action_bounds: Bounds | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: int = VERSION

    @property
    def bounds(self) -> Bounds:
        """Bounds of the actions in demonstrations and recorded episodes, (A,) each."""
        return self.action_bounds or (self.action_space.low, self.action_space.high)

    def view(self, obs: str) -> View:
        """Return the observation type of this name.

        Raises:
            ValueError: The task has no such observation type; the message lists those that it has.
        """
        if obs not in self.views:
            raise ValueError(f"--obs: unknown observation {obs!r}; this task has: {', '.join(self.views)}")
        return self.views[obs]
