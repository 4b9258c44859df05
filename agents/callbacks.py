"""What happens beside learning: evaluation, checkpoints, progress."""

import csv
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter
from tqdm.rich import tqdm

from agents.checkpoint import save_checkpoint
from agents.evaluation import Evaluation, evaluate


class Evaluate(BaseCallback):
    """Evaluate the deterministic policy from time to time, log the result, keep the best policy.

    Args:
        env: Environment of its own, so that training is the same with and without evaluations.
        every: Environment steps between evaluations.
        episodes: Episodes of each.
        directory: Run directory; the best policy (highest success rate, then fewest steps) goes to `best.pt`.
        stop_at: Success rate that ends the training; None never does.
    """

    def __init__(self, env: gym.Env, every: int, episodes: int, directory: Path, stop_at: float | None = None) -> None:
        super().__init__()
        self.env, self.every, self.episodes, self.directory, self.stop_at = env, every, episodes, directory, stop_at
        self.best = (-1.0, 0.0)  # `score` of the best policy
        self.last: Evaluation | None = None

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every:
            return True
        self.last = result = evaluate(self.model, self.env, self.episodes)
        self.logger.record("eval/success_rate", result.success_rate)
        if result.mean_steps is not None:
            self.logger.record("eval/mean_steps", result.mean_steps)
        self.logger.dump(self.num_timesteps)
        reached = score({"eval/success_rate": result.success_rate, "eval/mean_steps": result.mean_steps})
        if reached > self.best:
            self.best = reached
            save_policy(self.model.policy, self.directory / "best.pt")
        return self.stop_at is None or result.success_rate < self.stop_at


class Checkpoint(BaseCallback):
    """Write a checkpoint every `every` environment steps, at the end, and when the training is interrupted.

    Between two rollouts everything that a step does is done, its transition stored and learned from; elsewhere a
    checkpoint would miss a part. Ctrl-C and SIGTERM are therefore held back until then.
    """

    def __init__(self, directory: Path, every: int) -> None:
        super().__init__()
        self.directory, self.every = directory, every
        self.interrupted = False
        self.last: Path | None = None
        self.done_at = -1

    @contextmanager
    def holding_signals(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM save, then raise KeyboardInterrupt at the next chance."""
        handlers = {number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _interrupt(self, *_: Any) -> None:
        self.interrupted = True

    def _on_training_start(self) -> None:
        self.done_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.interrupted:
            self._save()
            raise KeyboardInterrupt
        if self.num_timesteps % self.every == 0:
            self._save()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._save()

    def _save(self) -> None:
        if self.num_timesteps != self.done_at:
            self.last = save_checkpoint(self.model, self.directory)  # type: ignore[arg-type]
            self.done_at = self.num_timesteps


class Progress(BaseCallback):
    """Show how far the training is: a bar on a terminal, a plain line every 30 s elsewhere."""

    def __init__(self, total: int, evaluation: Evaluate) -> None:
        super().__init__()
        self.total, self.evaluation = total, evaluation
        self.bar: Any = None

    def _on_training_start(self) -> None:
        self.start, self.first, self.shown = time.monotonic(), self.num_timesteps, time.monotonic()
        if sys.stderr.isatty():
            self.bar = tqdm(total=self.total, initial=self.num_timesteps, unit="step")

    def _on_step(self) -> bool:
        if self.bar is not None:
            self.bar.update(1)
            if self.evaluation.last is not None:
                self.bar.set_description(f"success {self.evaluation.last.success_rate:.0%}")
        elif time.monotonic() - self.shown > 30 or self.num_timesteps == self.total:
            self._line()
        return True

    def _on_training_end(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def _line(self) -> None:
        self.shown = time.monotonic()
        rate = (self.num_timesteps - self.first) / (self.shown - self.start)
        left = (self.total - self.num_timesteps) / max(rate, 1e-9) / 60
        last = self.evaluation.last
        success = "" if last is None else f", success {last.success_rate:.0%}"
        print(f"{self.num_timesteps}/{self.total} steps, {rate:.0f} steps/s, {left:.0f} min left{success}", flush=True)


class CsvProgress(KVWriter):
    """`progress.csv`: one row per logged step; a resumed run continues the file after its checkpoint.

    Args:
        path: The file.
        resumed_at: Rows of an existing file after this step are dropped.
    """

    def __init__(self, path: Path, resumed_at: int = 0) -> None:
        self.path, self.rows = path, []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = [row for row in csv.DictReader(file) if int(row["step"]) <= resumed_at]

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Append a row and rewrite the file atomically."""
        del key_excluded
        self.rows.append({"step": step} | {k: v for k, v in sorted(key_values.items()) if not isinstance(v, str)})
        names = ["step", *sorted({k for row in self.rows for k in row} - {"step"})]
        partial = self.path.with_suffix(".tmp")
        with partial.open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(self.rows)
        partial.replace(self.path)

    def close(self) -> None:
        """Nothing stays open between rows."""


def score(row: dict[str, Any]) -> tuple[float, float]:
    """Order evaluations, rows of `progress.csv`: by success rate, then by fewer steps; other rows come last."""
    rate, steps = row.get("eval/success_rate"), row.get("eval/mean_steps")
    return (-1.0 if rate in (None, "") else float(rate)), -(math.inf if steps in (None, "") else float(steps))


def save_policy(policy: torch.nn.Module, path: Path) -> None:
    """Write the weights that acting needs, atomically: the actor with its encoder."""
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    torch.save({k: v for k, v in policy.state_dict().items() if k.startswith("actor.")}, partial)
    partial.replace(path)
