"""How times are taken.

A `Work` does one call of a stage and returns the seconds that its measured part took: what a stage needs beforehand (a
reset, a state, an image) stays outside its time.
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
    """Takes times, as medians over samples.

    One thread of a CPU is measured by the processor time of the process, so that whatever else the machine does counts
    neither for nor against anything; several threads and GPUs by the time that passes.

    Attributes:
        device: "cpu" or "cuda".
        threads: Threads of PyTorch.
        repeats: Samples of each stage.
        seconds: Least duration of a sample [s].
    """

    device: str
    threads: int
    repeats: int
    seconds: float

    @property
    def clock(self) -> str:
        """Which time is taken."""
        return "processor time" if self.device == "cpu" and self.threads == 1 else "wall time"

    def now(self) -> float:
        """Time [s], after everything on the device is done."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.process_time() if self.clock == "processor time" else time.perf_counter()

    def timed(self, function: Callable[[], Any], calls: int = 1) -> Work:
        """Measure all of a function, which does `calls` calls at once."""

        def work() -> float:
            start = self.now()
            function()
            return (self.now() - start) / calls

        return work

    def steps(self, env: gym.Env, between: Work | None = None) -> Work:
        """Measure steps with random actions, or what comes `between` them."""
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
        """Return the median over samples of the mean time of a call [s], by name.

        The order is turned round from sample to sample; a first call of each warms up.
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
