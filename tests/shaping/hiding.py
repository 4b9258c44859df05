"""A task that hides its puck at random, and what shaping should pay in it."""

from typing import Any

import gymnasium
import numpy as np


class Hiding(gymnasium.Env):
    """A random walk that is shown in some frames; a hidden frame shows nothing but zeros.

    Episodes last 1 to 12 steps and end in success, in failure or at a time limit. Some are never shown.

    Args:
        repeats: Report `info["reset_info"]` in first steps.

    Attributes:
        episodes: Of each, what the frames showed (None where they hid the puck) and the rewards of its steps.
        ends: "success", "failure", "limit", or "" for the episode that goes on.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, repeats: bool = False) -> None:
        self.repeats = repeats
        self.episodes: list[tuple[list[np.ndarray | None], list[float]]] = []
        self.ends: list[str] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rate, self.left = self.np_random.choice([0.0, 0.5, 0.5, 1.0]), int(self.np_random.integers(1, 13))
        self.episodes.append(([], []))
        self.ends.append("")
        return self._frame()

    def step(self, action):
        first = self.repeats and len(self.episodes[-1][0]) == 1
        reset_info = {"puck_visible": self.episodes[-1][0][0] is not None}
        self.left -= 1
        end = str(self.np_random.choice(["success", "failure", "limit"])) if self.left == 0 else ""
        self.ends[-1] = end
        observation, info = self._frame()
        info |= {"is_success": end == "success"} | ({"reset_info": reset_info} if first else {})
        self.episodes[-1][1].append(float(end == "success"))
        return observation, self.episodes[-1][1][-1], end in ("success", "failure"), end == "limit", info

    def _frame(self):
        visible = bool(self.np_random.random() < self.rate)
        observation = self.np_random.normal(size=2).astype(np.float32)
        self.episodes[-1][0].append(observation if visible else None)
        return (observation if visible else np.zeros(2, np.float32)), {"puck_visible": visible}

    def get_state(self) -> dict[str, Any]:
        return {"random": self.np_random.bit_generator.state, "rate": float(self.rate), "left": self.left}

    def set_state(self, state: dict[str, Any]) -> None:
        self.np_random.bit_generator.state = state["random"]
        self.rate, self.left = state["rate"], state["left"]


class Height:
    """Φ of what is shown, 2 on the goal set; it must not be asked for what is hidden."""

    gamma = 0.9

    def __call__(self, observations: np.ndarray, success: np.ndarray) -> np.ndarray:
        assert (observations.any(axis=1) | success).all(), "the potential of a hidden frame"
        return np.where(success, 2.0, 1.0 + np.tanh(observations[:, 0])).astype(np.float32)

    def fingerprint(self) -> str:
        return "height"


def expected_rewards(frames: list[np.ndarray | None], rewards: list[float], end: str) -> list[float]:
    """Shape the rewards of an episode, read off the definition."""
    phi, gamma = Height(), Height.gamma
    shaped, last = [], None
    for step, (frame, reward) in enumerate(zip([*frames], [None, *rewards], strict=True)):
        over = step == len(rewards) and end in ("success", "failure")
        if over:
            known = 2.0 if end == "success" else 0.0
        else:
            known = last if frame is None else float(phi(frame[None], np.zeros(1, bool))[0])
        if reward is not None:
            shaped.append(reward if last is None else reward + gamma * known - last)
        last = known
    return shaped
