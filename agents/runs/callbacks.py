"""Callbacks of a training: evaluation, checkpoints and progress.

Evaluations and checkpoints take place at the start of a rollout, when the transitions are stored and the gradient steps
are done. In `on_step`, the current transition is not yet stored.
"""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from agents.collecting.stateful import Stateful
from agents.collecting.worker import Inline, Worker, WorkerError
from agents.evaluation.episodes import Evaluation, Interrupted
from agents.progress import Meter
from agents.runs.checkpoint import save_checkpoint
from agents.runs.directory import BEST
from agents.runs.policy import policy_weights
from shaping.tensors import write_tensors


class GoodEnough(Exception):
    """The policy has reached the requested success rate, which ends the training."""


class Evaluate(BaseCallback):
    """Evaluate the deterministic policy every `every` steps and at the end, log the result, and save the best policy.

    Args:
        evaluator: Evaluator of weights (`Evaluator`) with its own environment, so that evaluations do not change the
            training. It may run in a worker process; results are logged when they are received.
        every: Environment steps between evaluations.
        directory: Run directory; the best policy (highest success rate, then fewest steps) is written to `best.pt`.
        clock: Function that returns the seconds of training, logged with each result when it is received.
        stop_at: Success rate that ends the training with `GoodEnough`; None disables this.
    """

    def __init__(
        self,
        evaluator: Inline | Worker,
        every: int,
        directory: Path,
        clock: Callable[[], float],
        stop_at: float | None = None,
    ) -> None:
        super().__init__()
        self.evaluator, self.every, self.directory = evaluator, every, directory
        self.clock, self.stop_at = clock, stop_at
        # step and policy under evaluation, and number of frames with hidden puck
        self.waiting: tuple[int, dict[str, torch.Tensor], int | None] | None = None
        self.best = (-1.0, 0.0)  # `score` of the best policy
        self.best_policy: dict[str, torch.Tensor] | None = None
        self.done_at = 0  # step of the last evaluation
        self.success_rate: float | None = None  # result of the last evaluation

    @property
    def good_enough(self) -> bool:
        """Whether the last evaluation reached `stop_at`."""
        rate = self.success_rate
        return rate is not None and self.stop_at is not None and rate >= self.stop_at

    def get_state(self) -> dict[str, Any]:
        """Return the last result, the best result with its policy, and the policy under evaluation."""
        return {k: getattr(self, k) for k in ("best", "best_policy", "done_at", "success_rate", "waiting")}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`, and `best.pt` with it."""
        self.done_at, self.success_rate = state["done_at"], state["success_rate"]
        self.best, self.best_policy = tuple(state["best"]), state["best_policy"]
        if self.best_policy is None:
            (self.directory / BEST).unlink(missing_ok=True)
        else:
            write_tensors(self.directory / BEST, self.best_policy)
        self.waiting = state["waiting"]
        if self.waiting is not None:
            self._send(self.waiting[1])

    def _on_rollout_start(self) -> None:
        if self.num_timesteps // self.every > self.done_at // self.every:
            self._start()
        if self.waiting is not None and (self.stop_at is not None or self.evaluator.ready()):
            self._finish()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._start()
        self._finish()

    def _start(self) -> None:
        """Start an evaluation of the current policy."""
        if self.num_timesteps == self.done_at:
            return
        self._finish()
        weights, collected = policy_weights(self.model.averaged_actor), self.model.collected  # type: ignore[attr-defined]
        self.waiting, self.done_at = (self.num_timesteps, weights, collected.hidden_frames()), self.num_timesteps
        self._send(weights)

    def _send(self, weights: dict[str, torch.Tensor]) -> None:
        self.evaluator.send({name: value.numpy() for name, value in weights.items()})

    def _finish(self) -> None:
        """Wait for the pending evaluation, and log its result."""
        if self.waiting is None:
            return
        result = self.evaluator.receive()
        (step, weights, hidden), self.waiting = self.waiting, None
        self.success_rate = result.success_rate
        values = {"eval/success_rate": result.success_rate, "eval/seconds": self.clock()}
        if result.mean_steps is not None:
            values["eval/mean_steps"] = result.mean_steps
        if hidden is not None:
            values["rollout/hidden_frames"] = hidden
        for output in self.logger.output_formats:  # not `dump`, which would also write and clear the running means
            output.write(values, {}, step)  # type: ignore[union-attr]
        if score(result) > self.best:
            self.best, self.best_policy = score(result), weights
            write_tensors(self.directory / BEST, self.best_policy)
        if self.good_enough:
            raise GoodEnough


class Checkpoint(BaseCallback):
    """Write a checkpoint every `every` environment steps, at the end, and when the training is interrupted.

    Args:
        directory: Directory of the checkpoints.
        every: Environment steps between checkpoints.
        beside: Objects whose states are stored with the agent, by name.
    """

    def __init__(self, directory: Path, every: int, beside: Mapping[str, Stateful] | None = None) -> None:
        super().__init__()
        self.directory, self.every, self.beside = directory, every, beside or {}
        self.interrupted = False
        self.terminals: list[int] = []  # file descriptors of standard streams that are connected to a terminal
        self.done_at = -1

    @contextmanager
    def holding_signals(self) -> Iterator[None]:
        """On Ctrl-C, SIGTERM or a closed terminal, save at the start of the next rollout and raise KeyboardInterrupt.

        An evaluation in this process ends by `Interrupted` before that, and is repeated when the run is resumed.

        A SIGHUP that is ignored, as under `nohup`, stays ignored.
        """
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self.terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]
        handlers = {number: signal.signal(number, self._interrupt) for number in numbers}
        try:
            yield
        except (WorkerError, Interrupted):
            if not self.interrupted:  # otherwise the signal has ended the worker process too
                raise
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if self.interrupted:
            raise KeyboardInterrupt

    def save(self) -> None:
        """Write a checkpoint, unless the last one is from this step."""
        if self.num_timesteps != self.done_at:
            run = {name: part.get_state() for name, part in self.beside.items()}
            save_checkpoint(self.model, self.directory, run)  # type: ignore[arg-type]
            self.done_at = self.num_timesteps

    def _interrupt(self, number: int, _: Any) -> None:
        self.interrupted = True
        if number == signal.SIGHUP:  # writing to a closed terminal would raise an error before the checkpoint
            for descriptor in self.terminals:
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)

    def _on_training_start(self) -> None:
        self.done_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.interrupted:
            self.save()
            raise KeyboardInterrupt
        if self.num_timesteps // self.every > self.done_at // self.every:
            self.save()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self.save()


class Progress(BaseCallback):
    """Show the progress of the training, and measure its duration.

    Args:
        total: Environment steps at the end of the training.
        success_rate: Function that returns the success rate of the last evaluation, None before the first.
    """

    def __init__(self, total: int, success_rate: Callable[[], float | None]) -> None:
        super().__init__()
        self.total, self.success_rate = total, success_rate
        self.meter: Meter | None = None
        self.before, self.start = 0.0, time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds of training, including those before interruptions."""
        return self.before + time.monotonic() - self.start

    def get_state(self) -> dict[str, Any]:
        """Return the seconds of training."""
        return {"seconds": self.seconds}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        self.before, self.start = state["seconds"], time.monotonic()

    def close(self) -> None:
        """Show the last step, and close the progress display."""
        if self.meter is not None:
            self.meter.reach(self.num_timesteps, self._note())
            self.meter.show(self._note())
            self.meter.close()

    def _on_training_start(self) -> None:
        # Stable-Baselines3 computes the logged time and frame rate from these.
        self.model.start_time = time.time_ns() - int(self.seconds * 1e9)
        self.model._num_timesteps_at_start = 0
        if self.meter is None:
            self.meter = Meter("", "step", self.total, self.num_timesteps, leave=True)

    def _on_step(self) -> bool:
        if self.meter is not None:
            self.meter.reach(self.num_timesteps, self._note())
        return True

    def _note(self) -> str:
        rate = self.success_rate()
        return "" if rate is None else f"success {rate:.0%}"


def score(result: Evaluation) -> tuple[float, float]:
    """Return the sort key of an evaluation: higher success rate first, then fewer steps."""
    return result.success_rate, -math.inf if result.mean_steps is None else -result.mean_steps
