"""Environment wrapper that raises an error for numbers that are not finite, with the transition that caused them."""

from typing import Any

import gymnasium as gym
import numpy as np

from agents.collecting.stateful import get_states
from agents.finite import NotFiniteError, check_finite


class FiniteEnv(gym.Wrapper):
    """Wrapper that checks that observations, rewards and actions are finite, and keeps the last transition.

    Args:
        env: Environment; its layers may have state (`get_state`).
        role: Purpose of the environment, named in error messages.

    Attributes:
        transition: Step, episode, observation and environment state before the step, action, and the results of the
            step as far as they are known.
    """

    def __init__(self, env: gym.Env, role: str) -> None:
        super().__init__(env)
        self.transition: dict[str, Any] = {"role": role, "step": 0, "episode": 0, "observation": ()}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment.

        Raises:
            NotFiniteError: The observation is not finite.
            ValueError: It has another shape than the observation space.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        before = self.transition
        self.transition = {
            "role": before["role"],
            "step": before["step"],
            "episode": before["episode"] + 1,
            "observation": observation,
            "environment": get_states(self.env),
        }
        self._check("observation")
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment.

        Raises:
            NotFiniteError: Action, observation or reward is not finite, or the simulation became unstable.
            ValueError: The observation has another shape than the observation space.
        """
        before = self.transition
        self.transition = transition = {
            "role": before["role"],
            "step": before["step"] + 1,
            "episode": before["episode"],
            "observation": before.get("next_observation", before["observation"]),
            "environment": get_states(self.env),
            "action": action,
        }
        self._check("action")
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except FloatingPointError as error:
            raise NotFiniteError(str(error), transition) from error
        transition |= {"next_observation": observation, "reward": reward}
        self._check("next_observation", "reward")
        return observation, reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """Return step, episode and observation as plain data for a checkpoint."""
        last = self.transition
        observation = last.get("next_observation", last["observation"])
        return {"step": last["step"], "episode": last["episode"], "observation": np.asarray(observation).tolist()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        observation = np.array(state["observation"], self.observation_space.dtype)
        self.transition |= {"step": state["step"], "episode": state["episode"], "observation": observation}
        self.transition.pop("next_observation", None)

    def _check(self, *names: str) -> None:
        shape = self.observation_space.shape
        for name in names:
            if name.endswith("observation") and np.shape(self.transition[name]) != shape:
                raise ValueError(
                    f"{self.unwrapped} returned an observation of shape {np.shape(self.transition[name])}, but its "
                    f"observation space has {shape}"
                )
        try:
            check_finite(**{name: self.transition[name] for name in names})
        except NotFiniteError as error:
            error.arrays = self.transition
            raise
