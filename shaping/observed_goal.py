"""A goal set in observation space, as the task that the prior is learned on."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from shaping.goals import GoalSet


class ObservedGoal(gymnasium.Wrapper):
    """Decide whether the goal is reached by what the observation shows, not by the simulator's state.

    Φ measures demonstrated goals in observations (for a cloud, the centroid of the points that a camera sees, several
    mm beside the puck's centre). A value learned on goals of the simulator would be that of another goal (paper,
    section "Learning From (Partial) Observations": goal sets are defined in the observation space).

    achieved position = desired position + extract(observation); achieved velocity = its change over the last step.
    `info["achieved_goal"]`, `info["is_success"]`, the reward and `terminated` follow from these by the environment's
    own `goal_reward`. A frame that does not show the puck reaches no goal: its velocity is unknown, infinity.

    Args:
        env: environment with `goal_reward(achieved, desired)` and `info["desired_goal"]`, position and velocity (4,)
            [m, m/s], and a constant rate `metadata["render_fps"]` [steps/s].
        goals: goal set of its observations.
    """

    def __init__(self, env: gymnasium.Env, goals: GoalSet) -> None:
        super().__init__(env)
        self.goals = goals
        self._achieved = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, at rest."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._achieved = self._position(observation, info)
        return observation, self._judged(info, np.zeros(2))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; it terminates where the observed goal is reached."""
        observation, _, _, truncated, info = self.env.step(action)
        before, self._achieved = self._achieved, self._position(observation, info)
        velocity = (self._achieved - before) * self.metadata["render_fps"]
        info = self._judged(info, velocity)
        return observation, float(info["is_success"]), info["is_success"], truncated, info

    def get_state(self) -> dict[str, Any]:
        """Position of the last observation, as plain data for a checkpoint."""
        return {"achieved": self._achieved.tolist()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""
        self._achieved = np.array(state["achieved"])

    def _position(self, observation: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        return info["desired_goal"][:2] + self.goals.extract(observation)[:2]

    def _judged(self, info: dict[str, Any], velocity: np.ndarray) -> dict[str, Any]:
        seen = info.get("puck_visible", True)
        achieved = np.append(self._achieved, velocity if seen else np.full(2, np.inf))
        reached = self.env.unwrapped.goal_reward(achieved, info["desired_goal"])  # type: ignore[attr-defined]
        return info | {"achieved_goal": achieved, "is_success": bool(reached)}
