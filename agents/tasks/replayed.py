"""Wrapper that lets a checkpoint restore an environment that has no state of its own: by its seed and its actions."""

from typing import Any

import gymnasium as gym
import numpy as np


class Replayed(gym.Wrapper):
    """Start every episode with a seed, and restore a state by the seed and the actions of its episode.

    The result of a restored state is exact if the environment is deterministic after `reset(seed=…)`. Seeds of episodes
    are drawn from a generator that `reset(seed=…)` seeds.
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._seeds = np.random.default_rng()
        self._episode: dict[str, Any] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode with the given seed, or with the next one of the generator."""
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        else:
            seed = int(self._seeds.integers(2**31))
        self._episode = {"seed": seed, "options": options, "actions": []}
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step and record its action."""
        assert self._episode is not None, "reset comes before step"
        self._episode["actions"].append((str(np.asarray(action).dtype), np.asarray(action).tolist()))
        return self.env.step(action)

    def get_state(self) -> dict[str, Any]:
        """Return the generator of the seeds, and seed and actions of the episode, as plain data for a checkpoint."""
        episode = self._episode and {**self._episode, "actions": list(self._episode["actions"])}
        return {"seeds": self._seeds.bit_generator.state, "episode": episode}

    def set_state(self, state: dict[str, Any]) -> None:
        """Repeat the episode of a state returned by `get_state`."""
        if state["episode"] is not None:
            self.reset(seed=state["episode"]["seed"], options=state["episode"]["options"])
            for dtype, action in state["episode"]["actions"]:
                self.step(np.array(action, dtype))
        self._seeds.bit_generator.state = state["seeds"]
