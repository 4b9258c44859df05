"""Wrapper that defines success in observation space, for the task on which the value estimator is pre-trained."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from shaping.goals import GoalSet


class ObservedGoal(gymnasium.Wrapper):
    """Compute success from the observation instead of the simulator state.

    Φ uses demonstrated goals as they are observed (for a cloud: the centroid of the visible points, which is several mm
    away from the puck's centre). A value estimator trained on goals of the simulator would estimate the value of a
    different goal (paper, section "Learning From (Partial) Observations": goal sets are defined in the observation
    space).

    achieved position = desired position + extract(observation); achieved velocity = change of the achieved position
    over the last step. From these, `goal_reward` of the environment gives `info["achieved_goal"]`,
    `info["is_success"]`, the reward and `terminated`. In a frame that does not show the puck, the velocity is unknown
    and set to infinity, so no goal is reached.

    Args:
        env: Environment with `goal_reward(achieved_goal, desired_goal, info)`, `info["desired_goal"]`, position and
            velocity, shape (4,) [m, m/s], and a constant rate `metadata["render_fps"]` [steps/s].
        goals: Goal set of the observations.
    """

    def __init__(self, env: gymnasium.Env, goals: GoalSet) -> None:
        super().__init__(env)
        self.goals = goals
        self._achieved = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; the achieved velocity of the first frame is 0."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._achieved = self._position(observation, info)
        return observation, self._judged(info, np.zeros(2))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the episode terminates when the observed goal is reached."""
        observation, _, _, truncated, info = self.env.step(action)
        before, self._achieved = self._achieved, self._position(observation, info)
        velocity = (self._achieved - before) * self.metadata["render_fps"]
        info = self._judged(info, velocity)
        return observation, float(info["is_success"]), info["is_success"], truncated, info

    def get_state(self) -> dict[str, Any]:
        """Return the achieved position of the last observation, as plain data for a checkpoint."""
        return {"achieved": self._achieved.tolist()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state`."""
        self._achieved = np.array(state["achieved"])

    def _position(self, observation: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        return info["desired_goal"][:2] + self.goals.extract(observation)[:2]

    def _judged(self, info: dict[str, Any], velocity: np.ndarray) -> dict[str, Any]:
        seen = info.get("puck_visible", True)
        achieved = np.append(self._achieved, velocity if seen else np.full(2, np.inf))
        reached = self.env.unwrapped.goal_reward(achieved, info["desired_goal"], info)  # type: ignore[attr-defined]
        return info | {"achieved_goal": achieved, "is_success": bool(reached)}
