"""Trainings as processes of their own, which are continued where they are interrupted."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from agents import runs
from agents.config import TrainConfig
from agents.config.command import command

SECONDS_BETWEEN_LOOKS = 0.2  # at the running trainings


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


def run_missing(trainings: Sequence[tuple[TrainConfig, Path]], parallel: int) -> None:
    """Start or resume every run that is not finished, `parallel` at a time; one that fails does not stop the others.

    Args:
        trainings: Configurations and their run directories.
        parallel: Processes at a time.

    Raises:
        ValueError: Runs failed; names their directories, after the others are finished.
    """
    waiting = [
        (directory, start_or_resume(training, directory))
        for training, directory in trainings
        if not is_finished(directory, training.steps)
    ]
    running: list[tuple[Path, subprocess.Popen]] = []
    failed: list[str] = []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                directory, line = waiting.pop(0)
                print("running", shlex.join(line[1:]), flush=True)
                running.append((directory, subprocess.Popen(line, env=environment)))
            time.sleep(SECONDS_BETWEEN_LOOKS)
            for directory, process in [entry for entry in running if entry[1].poll() is not None]:
                running.remove((directory, process))
                if process.returncode != 0:
                    failed.append(str(directory))
                    print(f"failed with status {process.returncode}: {directory}", file=sys.stderr)
    except KeyboardInterrupt:  # which the runs have got too, and write their checkpoints
        for _, process in running:
            process.wait()
        raise
    if failed:
        raise ValueError(f"{', '.join(failed)} failed; the same command tries again what is missing")
