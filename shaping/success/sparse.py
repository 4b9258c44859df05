"""Wrapper that makes the sparse task of any environment: reward 1 at its first success, where the episode ends."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from shaping.success.info import IS_SUCCESS, Success, succeeded
from shaping.success.reached import check_sparse

HORIZONS = ("horizon", "_max_episode_steps")
"""Attributes that tell the time limit: of an environment that ends its episodes itself, and of Gymnasium's wrapper."""


class SparseSuccess(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Reward 1 in the step that reaches the goal set and end the episode there; all other steps are rewarded with 0.

    Whether a step reached the goal set is asked, in this order:

    - `success`, if it is given;
    - ``info["is_success"]``;
    - of a GoalEnv of Gymnasium-Robotics, `compute_terminated`, and `compute_reward`, which must be sparse: the goal set
      is where the reward is that of the goal itself.

    ``info["is_success"]`` is the answer, and ``info["environment_reward"]`` the reward that the environment gave.

    Args:
        env: Environment with a time limit.
        success: Key of `info`, or function of it, that tells whether a step reached the goal set.

    Attributes:
        horizon: Maximum number of steps of an episode.

    Raises:
        ValueError: The environment has no time limit, or an episode ends and nothing tells whether it succeeded, or it
            is asked of a `compute_reward` that is not sparse.
    """

    def __init__(self, env: gymnasium.Env, success: Success | None = None) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, success=success)
        super().__init__(env)
        limits = [env.get_wrapper_attr(name) for name in HORIZONS if env.has_wrapper_attr(name)]
        if not limits:
            raise ValueError(f"{env.unwrapped} has no time limit: give gymnasium.make max_episode_steps=")
        self.success, self.horizon, self._is_sparse = success, int(min(limits)), False

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step and ask whether it succeeded."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        success = self._succeeded(observation, info, bool(terminated or truncated))
        info = {**info, IS_SUCCESS: success, "environment_reward": float(reward)}
        return observation, float(success), bool(terminated or success), bool(truncated), info

    def _succeeded(self, observation: Any, info: dict[str, Any], ended: bool) -> bool:
        base: Any = self.env.unwrapped
        if self.success is not None:
            return succeeded(info, self.success, ended)
        if IS_SUCCESS in info or not (isinstance(observation, dict) and hasattr(base, "compute_reward")):
            return succeeded(info, ended=ended)
        achieved, desired = observation["achieved_goal"], observation["desired_goal"]
        if hasattr(base, "compute_terminated") and base.compute_terminated(achieved, desired, info):
            return True
        if not self._is_sparse:
            check_sparse(base.compute_reward, np.zeros(np.shape(desired)), base, info)
            self._is_sparse = True
        return bool(np.all(base.compute_reward(achieved, desired, info) == base.compute_reward(desired, desired, info)))
