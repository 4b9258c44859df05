"""Environment of a prior: an episode ends when its goal, read from the observation, is reached."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from shaping.goals import GoalSet

Reached = float | Callable[[np.ndarray], np.ndarray]
"""Distance from the goal within which it is reached, or a function of the differences achieved − desired (B, goal)."""


def goal_reward(
    goals: GoalSet, reached: Reached, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None
) -> np.ndarray:
    """Return 1 where the goal is reached, else 0.

    Args:
        goals: Goal set of the observations.
        reached: See `Reached`.
        achieved_goal: Achieved goals (…, `goals.reported`).
        desired_goal: Desired goals (…, `goals.reported`).
        info: Ignored.
    """
    offset = (np.asarray(achieved_goal) - desired_goal)[..., : goals.goal_dim]
    near = (
        reached(offset)
        if callable(reached)
        else goals.length(np.atleast_2d(offset)).reshape(offset.shape[:-1]) <= reached
    )
    return np.asarray(near, dtype=float)


def check_reached(reached: Any) -> Reached:
    """Return `reached` if it is a `Reached`.

    Raises:
        ValueError: It is not.
    """
    if not (callable(reached) or (isinstance(reached, int | float) and reached > 0)):
        raise ValueError(f"reached is {reached!r}; give a distance above 0, or a function of the differences")
    return reached


class Play(gym.Wrapper):
    """Reward 1 and end the episode where the observed goal is reached; success elsewhere is ignored.

    `info` has `achieved_goal`, relative to the goal of the environment, `desired_goal`, which is 0, and `is_success`.
    An episode that ends before the goal is reached is truncated.

    Args:
        env: Environment whose goals vary, with flat observations or clouds.
        goals: Goal set of the observations.
        reached: See `Reached`. None asks `compute_reward` of a GoalEnv, whose reward must be sparse and depend on the
            difference of the goals alone.

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
        if reached is None and not hasattr(env.unwrapped, "compute_reward"):
            raise ValueError(
                f"{env.unwrapped} has no compute_reward: give reached=, the distance within which a goal is reached"
            )
        self.goals, self.reached = goals, check_reached(self._rewarded if reached is None else reached)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)

    def goal_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None) -> np.ndarray:
        """Return 1 where the goal is reached, else 0 (`agents.prior.play.goal_reward`)."""
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

    def _rewarded(self, offset: np.ndarray) -> np.ndarray:
        """Return where `compute_reward` of a GoalEnv gives the reward that it gives at the goal."""
        compute, zero = self.env.unwrapped.compute_reward, np.zeros_like(offset)  # type: ignore[attr-defined]
        return compute(offset, zero, {}) == compute(zero, zero, {})

    @staticmethod
    def _single(observation: np.ndarray) -> np.ndarray:
        return np.asarray(observation, dtype=np.float32)
