"""Evaluation episodes of a deterministic policy: success rate, its confidence interval and episode lengths."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from agents.collecting.randomness import drawing_from, seeded
from agents.evaluation.captions import captioned
from agents.progress import counted
from shaping.success import IS_SUCCESS, Success, succeeded

EVALUATION_SEED = 1_000_000  # far from the seeds of trainings, so that the initial states differ


class Interrupted(Exception):
    """An evaluation was told to stop before its end."""


@dataclass(frozen=True)
class Failure:
    """An episode that did not reach the goal set.

    Attributes:
        seed: Seed of its reset.
        start: `info["achieved_goal"]` after the reset; None if it is no array of numbers.
        end: The same after the last step.
    """

    seed: int
    start: list[float] | None
    end: list[float] | None


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation.

    Attributes:
        episodes: Number of episodes.
        successes: Number of episodes that reached the goal set.
        success_rate: Share of successful episodes.
        interval: Wilson's 95 % interval of the success rate.
        mean_steps: Mean length of the successful episodes [environment steps]; None if there are none.
        steps: Length of every episode [environment steps].
        failures: Episodes that did not reach the goal set.
    """

    episodes: int
    successes: int
    success_rate: float
    interval: tuple[float, float]
    mean_steps: float | None
    steps: list[int]
    failures: list[Failure]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def wilson_interval(successes: int, episodes: int, z: float = 1.96) -> tuple[float, float]:
    """Return the confidence interval of a success rate (Wilson 1927).

    (p + z²/2n ± z√(p(1−p)/n + z²/4n²)) / (1 + z²/n)

    Raises:
        ValueError: There are no episodes, or more successes than episodes.
    """
    if episodes < 1 or not 0 <= successes <= episodes:
        raise ValueError(f"{successes} successes of {episodes} episodes: give 0 ≤ successes ≤ episodes ≥ 1")
    p, n = successes / episodes, episodes
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


class Evaluator:
    """Evaluator of policy weights.

    Args:
        policy: Copy of the policy; its weights are overwritten.
        env: Environment; its reward is not used.
        episodes: Episodes per evaluation.
        shown: Whether to show the progress.

    Attributes:
        stop: Asked before every step; if it returns True, the evaluation raises `Interrupted`.
    """

    def __init__(self, policy: torch.nn.Module, env: gym.Env, episodes: int, shown: bool = True) -> None:
        self.policy, self.env, self.episodes, self.shown = policy, env, episodes, shown
        self.stop: Callable[[], bool] = lambda: False
        self.policy.train(False)

    def __call__(self, weights: dict[str, np.ndarray]) -> Evaluation:
        """Evaluate the weights; every call uses the same random numbers and leaves the global generators unchanged."""
        self.policy.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()}, strict=False)
        with drawing_from(seeded(EVALUATION_SEED)):
            return evaluate(self.policy, self.env, self.episodes, shown=self.shown, stop=self.stop)


def evaluate(
    policy: Any,
    env: gym.Env,
    episodes: int,
    seed: int = EVALUATION_SEED,
    on_frame: Callable[[np.ndarray], None] | None = None,
    success: Success = IS_SUCCESS,
    shown: bool = True,
    stop: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Run evaluation episodes, the i-th reset with `seed + i`, and count those that end in the goal set.

    Args:
        policy: Object with the method `predict` of Stable-Baselines3.
        env: Environment; its reward is not used.
        episodes: Number of episodes, at least 1.
        seed: Seed of the first episode.
        on_frame: Called with every video frame, n + 1 times for an episode of n steps. The caption gives episode and
            step, that of the last frame also the outcome.
        success: Success criterion at the end of an episode: a key of `info`, or a function of `info`.
        shown: Whether to show the progress.
        stop: Asked before every step; True ends the evaluation.

    Raises:
        Interrupted: `stop` returned True.
        ValueError: `episodes` is below 1, or `info` does not tell whether an episode succeeded.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; it must be at least 1")
    successes: list[bool] = []
    steps: list[int] = []
    failures: list[Failure] = []

    def show(outcome: str = "") -> None:
        if on_frame is not None:
            on_frame(captioned(env.render(), f"episode {len(steps) + 1}, step {count}{outcome}"))

    for episode in counted(range(episodes), "evaluation", "episode") if shown else range(episodes):
        observation, info = env.reset(seed=seed + episode)
        start, done, count = _place(info), False, 0
        while not done:
            if stop():
                raise Interrupted
            show()
            action, _ = policy.predict(observation, deterministic=True)
            observation, _, terminated, truncated, info = env.step(action)
            done, count = terminated or truncated, count + 1
        successes.append(succeeded(info, success))
        failures += [Failure(seed + episode, start, _place(info))] * (not successes[-1])
        show(": success" if successes[-1] else ": no success")
        steps.append(count)
    won = sum(successes)
    taken = [s for s, success in zip(steps, successes, strict=True) if success]
    mean = float(np.mean(taken)) if taken else None
    return Evaluation(episodes, won, won / episodes, wilson_interval(won, episodes), mean, steps, failures)


def _place(info: dict[str, Any]) -> list[float] | None:
    """Return the achieved goal as plain numbers."""
    place = info.get("achieved_goal")
    return np.round(place, 6).ravel().tolist() if isinstance(place, np.ndarray) and place.dtype.kind in "fiu" else None
