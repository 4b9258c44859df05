"""Trainings as processes of their own, which are continued where they are interrupted."""

import os
import shlex
import sys
from pathlib import Path

from agents import runs
from agents.config import TrainConfig
from agents.train import command


def is_finished(directory: Path, steps: int) -> bool:
    """Whether there is the result of a run that was meant to take that many steps."""
    return os.path.lexists(directory / runs.RESULT) and runs.read_config(directory).steps >= steps


def start_or_resume(training: TrainConfig, directory: Path) -> list[str]:
    """Return the command that trains as configured in `directory`, or continues the run that is there."""
    if os.path.lexists(directory / runs.CONFIG):
        steps = max(training.steps, runs.read_config(directory).steps)
        return [sys.executable, "-m", "agents.train", "--resume", str(directory), "--steps", str(steps)]
    place = ["--out", str(directory), "--parallel", training.parallel]  # which a command to repeat a result leaves out
    return [sys.executable, *shlex.split(command(training))[1:], *place]
