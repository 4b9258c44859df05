"""Log of a training: `progress.csv`, and the same values for TensorBoard."""

import bisect
import csv
import io
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter, Logger
from torch.utils.tensorboard import SummaryWriter

from agents.progress import say
from envs.files import read_regular, write_bytes

PROGRESS = "progress.csv"
CLIPPED, MANY_CLIPPED = "train/clipped_targets", 0.05
UNWRITTEN = ("name_to_value", "name_to_count", "name_to_excluded")
Row = dict[str, float]


class RunLog(KVWriter):
    """Log with one row per logged step; a resumed run continues the log after its checkpoint.

    Args:
        directory: Run directory.
        resumed_at: Step of the checkpoint, 0 for a new run; later rows of an existing log are dropped.

    Raises:
        ValueError: The existing log is damaged.
    """

    def __init__(self, directory: Path, resumed_at: int = 0) -> None:
        self.path, self.rows = directory / PROGRESS, []
        if self.path.exists():
            self.rows = [row for row in read_progress(self.path) if row["step"] <= resumed_at]
            self._write_rows()
        self._directory, self._purged_from = directory, resumed_at + 1
        self._events: SummaryWriter | None = None  # made at the first write: its thread must not exist at a fork

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Log the numbers in `key_values`; a name that is already logged for this step keeps its value."""
        place = bisect.bisect_left(self.rows, step, key=itemgetter("step"))  # results of evaluations arrive late
        if place == len(self.rows) or self.rows[place]["step"] != step:
            self.rows.insert(place, {"step": step})
        row = self.rows[place]
        numbers = {k: v for k, v in sorted(key_values.items()) if isinstance(v, (int, float, np.number))}
        new = {name: float(value) for name, value in numbers.items() if name not in row}
        row |= new
        self._write_rows()
        if self._events is None:
            self._events = SummaryWriter(str(self._directory), purge_step=self._purged_from)
        for name, value in new.items():
            if "tensorboard" not in key_excluded.get(name, ()):
                self._events.add_scalar(name, value, step)
        self._events.flush()

    def close(self) -> None:
        """Close the event file."""
        if self._events is not None:
            self._events.close()

    def _write_rows(self) -> None:
        names = ["step", *sorted({name for row in self.rows for name in row} - {"step"})]
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows({name: f"{value:.12g}" for name, value in row.items()} for row in self.rows)
        write_bytes(self.path, text.getvalue().encode())


def read_progress(path: Path) -> list[Row]:
    """Read `progress.csv`; a row holds only the values that were logged at its step.

    Raises:
        FileNotFoundError: No such file.
        ValueError: The file is damaged or not a regular file.
    """
    content = read_regular(path)
    try:
        lines = csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True)
        rows = [{name: float(text) for name, text in line.items() if text} for line in lines]
        steps = [row["step"] for row in rows]
        if steps != sorted(steps):
            raise ValueError("steps decrease")
    except (ValueError, TypeError, KeyError, csv.Error) as error:
        raise ValueError(f"{path} is damaged ({error}); move it away") from error
    return rows


def last_step(directory: Path) -> int:
    """Return the last logged step of the run in `directory`, 0 if nothing is logged."""
    path = directory / PROGRESS
    rows = read_progress(path) if path.exists() else []
    return int(rows[-1]["step"]) if rows else 0


class ClippedTargets(KVWriter):
    """Print a warning once per run if many of the critic's targets lie outside their bounds.

    Args:
        bounds: Bounds of the targets; None disables the warning.
        rows: Rows that the run has logged before.
    """

    def __init__(self, bounds: tuple[float, float] | None, rows: list[Row]) -> None:
        self.bounds, self.silent = bounds, bounds is None or any(row.get(CLIPPED, 0.0) > MANY_CLIPPED for row in rows)

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Check the mean share of clipped targets."""
        share = key_values.get(CLIPPED, 0.0)
        if not self.silent and share > MANY_CLIPPED and self.bounds is not None:
            low, high = self.bounds
            say(
                f"{share:.0%} of the critic's targets lie outside [{low:g}, {high:g}] and are clipped; "
                "if values can be larger or smaller, give the range with --learner.target-bounds"
            )
            self.silent = True

    def close(self) -> None:
        """Do nothing."""


class RunLogger(Logger):
    """Stable-Baselines3 logger of a run directory; its means that are not yet written are part of checkpoints.

    Args:
        directory: Run directory.
        resumed_at: Step of the checkpoint, 0 for a new run.
        target_bounds: Bounds of the critic's targets.
        trackers: Further outputs.
    """

    def __init__(
        self,
        directory: Path,
        resumed_at: int = 0,
        target_bounds: tuple[float, float] | None = None,
        trackers: Sequence[KVWriter] = (),
    ) -> None:
        log = RunLog(directory, resumed_at)
        super().__init__(str(directory), [log, ClippedTargets(target_bounds, log.rows.copy()), *trackers])

    def get_state(self) -> dict[str, Any]:
        """Return the values that are recorded but not yet written."""
        return {name: dict(getattr(self, name)) for name in UNWRITTEN}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        for name in UNWRITTEN:
            getattr(self, name).update(state[name])
