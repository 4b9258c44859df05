"""Experiment trackers that receive what a run logs: Weights & Biases and MLflow, both extras."""

import importlib
import json
import time
import uuid
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter

from agents.config import Tracker
from agents.progress import say
from envs.files import read_regular, write_text

TRACKED = "tracking.json"
"""File in a run directory with the identifier of the run in each tracker, so that a resumed run continues there."""
PROJECT = "pushcloud"


class TrackedLog(KVWriter):
    """Send the logged numbers to a tracker, which is opened at the first write: its threads must not exist at a fork.

    A tracker that fails is named once in a line, and the training goes on without it.

    Args:
        directory: Run directory, whose name is that of the tracked run.
        settings: Configuration of the training by name.

    Raises:
        ImportError: The tracker is not installed.
        ValueError: The identifiers of the run are damaged.
    """

    name: Tracker

    def __init__(self, directory: Path, settings: Mapping[str, Any]) -> None:
        self.directory, self.settings, self.opened, self.failed = directory, dict(settings), False, False
        try:
            self.library: Any = importlib.import_module(self.name)
        except ImportError:
            raise ImportError(f"--track {self.name} needs an extra: pip install 'pushcloud[tracking]'") from None
        self.stored = read_identifiers(directory)

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Send the numbers in `key_values`."""
        numbers = {k: float(v) for k, v in key_values.items() if isinstance(v, (int, float, np.number))}
        try:
            if not self.opened and not self.failed:
                self.stored[self.name] = self.open(self.stored.get(self.name))
                write_text(self.directory / TRACKED, json.dumps(read_identifiers(self.directory) | self.stored) + "\n")
                self.opened = True
            if self.opened and not self.failed:
                self.send(numbers, step)
        except OSError:  # of the run directory
            raise
        except Exception as error:
            self.failed = True
            reason = " ".join(str(error).split())
            say(f"--track {self.name} failed, and the training goes on without it: {reason:.300}")

    @abstractmethod
    def open(self, identifier: str | None) -> str:
        """Continue the tracked run with an identifier, or start one, and return its identifier."""

    @abstractmethod
    def send(self, numbers: dict[str, float], step: int) -> None:
        """Send the numbers of a step."""


def read_identifiers(directory: Path) -> dict[str, str]:
    """Return the identifiers of the run in `directory` by tracker.

    Raises:
        ValueError: The file is damaged.
    """
    path = directory / TRACKED
    if not path.exists():
        return {}
    try:
        stored = json.loads(read_regular(path))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); move it away, and the trackers start new runs") from error
    if not (isinstance(stored, dict) and all(isinstance(text, str) for text in stored.values())):
        raise ValueError(
            f"{path} is damaged (not identifiers by tracker); move it away, and the trackers start new runs"
        )
    return stored


class WandbLog(TrackedLog):
    """Log to Weights & Biases."""

    name = "wandb"

    def open(self, identifier: str | None) -> str:
        """Continue or start the tracked run."""
        identifier = identifier or uuid.uuid4().hex
        self.run = self.library.init(
            project=PROJECT,
            name=self.directory.name,
            id=identifier,
            resume="allow",
            dir=str(self.directory),
            config=self.settings,
        )
        self.run.define_metric("*", step_metric="step")  # results of evaluations arrive late; W&B's own steps forbid it
        return identifier

    def send(self, numbers: dict[str, float], step: int) -> None:
        """Send the numbers of a step."""
        self.run.log({"step": step, **numbers})

    def close(self) -> None:
        """Finish the tracked run."""
        if self.opened and not self.failed:
            self.run.finish()


class MlflowLog(TrackedLog):
    """Log to MLflow.

    Raises:
        ValueError: There is nothing to log to.
    """

    name = "mlflow"

    def __init__(self, directory: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(directory, settings)
        try:
            self.client = self.library.MlflowClient()
        except self.library.exceptions.MlflowException as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(
                f"--track mlflow: {reason}; set MLFLOW_TRACKING_URI to a server or to sqlite:///mlflow.db"
            ) from error

    def open(self, identifier: str | None) -> str:
        """Continue or start the tracked run."""
        if identifier is None:
            experiment = self.library.set_experiment(PROJECT).experiment_id
            identifier = self.client.create_run(experiment, run_name=self.directory.name).info.run_id
            for name, value in self.settings.items():
                self.client.log_param(identifier, name, value)
        self.identifier = identifier
        return identifier

    def send(self, numbers: dict[str, float], step: int) -> None:
        """Send the numbers of a step."""
        now = int(1000 * time.time())
        metrics = [self.library.entities.Metric(name, value, now, step) for name, value in numbers.items()]
        self.client.log_batch(self.identifier, metrics)

    def close(self) -> None:
        """Finish the tracked run."""
        if self.opened and not self.failed:
            self.client.set_terminated(self.identifier)


TRACKERS: dict[Tracker, type[TrackedLog]] = {"wandb": WandbLog, "mlflow": MlflowLog}
