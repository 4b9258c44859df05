"""Timing of benchmark stages.

A `Work` performs one call of a stage and returns the duration of the measured part [s]. Preparations such as a reset, a
state or an image are not part of this duration.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch

Work = Callable[[], float]

STEPS_BETWEEN_RESETS = 50


@dataclass(frozen=True)
class Timer:
    """Timer that takes medians over samples.

    With one CPU thread it measures the processor time of the process, which does not depend on other processes; with
    several threads or a GPU it measures wall time.

    Attributes:
        device: "cpu" or "cuda".
        threads: Number of PyTorch threads.
        repeats: Samples per stage.
        seconds: Minimum duration of a sample [s].
    """

    device: str
    threads: int
    repeats: int
    seconds: float

    @property
    def clock(self) -> str:
        """Kind of time that is measured: "processor time" or "wall time"."""
        return "processor time" if self.device == "cpu" and self.threads == 1 else "wall time"

    def now(self) -> float:
        """Return the time [s] after all work on the device is finished."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.process_time() if self.clock == "processor time" else time.perf_counter()

    def timed(self, function: Callable[[], Any], calls: int = 1) -> Work:
        """Return the work of a function that performs `calls` calls; all of it is measured."""

        def work() -> float:
            start = self.now()
            function()
            return (self.now() - start) / calls

        return work

    def steps(self, env: gym.Env, between: Work | None = None) -> Work:
        """Return the work of environment steps with random actions; `between`, if given, is measured instead."""
        rng = np.random.default_rng(0)
        left = 0

        def work() -> float:
            nonlocal left
            if left == 0:
                env.reset()
                left = STEPS_BETWEEN_RESETS
            action = rng.uniform(-1.0, 1.0, 2).astype(np.float32)
            start = self.now()
            _, _, terminated, truncated, _ = env.step(action)
            elapsed = self.now() - start
            left = 0 if terminated or truncated else left - 1
            return elapsed if between is None else between()

        return work

    def measure(self, works: dict[str, Work]) -> dict[str, float]:
        """Return the median over samples of the mean duration of a call [s] by name.

        The order of the works alternates between samples; a first call of each is a warm-up.
        """
        for work in works.values():
            work()
        samples: dict[str, list[float]] = {name: [] for name in works}
        for repeat in range(self.repeats):
            for name in sorted(works, reverse=bool(repeat % 2)):
                spent = [works[name]()]
                while sum(spent) < self.seconds:
                    spent.append(works[name]())
                samples[name].append(statistics.fmean(spent))
        return {name: statistics.median(values) for name, values in samples.items()}
