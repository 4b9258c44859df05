"""Environment of a prior: an episode ends when its goal, read from the observation, is reached."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from shaping.goals import GoalSet
from shaping.success.reached import Reached, goal_reward, goal_test


class Play(gym.Wrapper):
    """Reward 1 and end the episode where the observed goal is reached; success elsewhere is ignored.

    `info` has `achieved_goal`, relative to the goal of the environment, `desired_goal`, which is 0, and `is_success`.
    An episode that ends before the goal is reached is truncated.

    Args:
        env: Environment whose goals vary, with flat observations or clouds.
        goals: Goal set of the observations.
        reached: Distance within which a goal is reached, or a function of the differences; None asks a GoalEnv
            (`shaping.success.reached.goal_test`).

    Raises:
        ValueError: The observations do not fit the goal set, or nothing tells when a goal is reached.
    """

    def __init__(self, env: gym.Env, goals: GoalSet, reached: Reached | None = None) -> None:
        super().__init__(env)
        shape = getattr(env.observation_space, "shape", None)
        if shape != goals.observation_shape:
            raise ValueError(
                f"observations are {env.observation_space}, but the goals are for shape {goals.observation_shape}; "
                "flatten a dictionary by gymnasium.wrappers.FlattenObservation"
            )
        self.goals, self.reached = goals, goal_test(goals, reached, env)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)

    def goal_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None) -> np.ndarray:
        """Return 1 where the goal is reached, else 0 (`shaping.success.reached.goal_reward`)."""
        return goal_reward(self.goals, self.reached, achieved_goal, desired_goal)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._single(observation), self._judged(observation, info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the episode terminates where the goal is reached."""
        observation, _, terminated, truncated, info = self.env.step(action)
        info = self._judged(observation, info)
        success = info["is_success"]
        return self._single(observation), float(success), success, bool(truncated or (terminated and not success)), info

    def _judged(self, observation: np.ndarray, info: dict[str, Any]) -> dict[str, Any]:
        achieved = np.asarray(self.goals.extract(observation), dtype=float)
        achieved = np.pad(achieved, (0, self.goals.reported - len(achieved)))
        desired = np.zeros_like(achieved)
        reached = bool(self.goal_reward(achieved, desired))
        return {**info, "achieved_goal": achieved, "desired_goal": desired, "is_success": reached}

    @staticmethod
    def _single(observation: np.ndarray) -> np.ndarray:
        return np.asarray(observation, dtype=np.float32)
