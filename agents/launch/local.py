"""Trainings in separate local processes; interrupted runs are resumed."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from agents import runs
from agents.config import TrainConfig
from agents.config.command import command

SECONDS_BETWEEN_LOOKS = 0.2  # polling interval of the processes [s]


def is_finished(directory: Path, steps: int) -> bool:
    """Return whether the directory holds the result of a run of at least `steps` environment steps."""
    return os.path.lexists(directory / runs.RESULT) and runs.read_config(directory).steps >= steps


def start_or_resume(training: TrainConfig, directory: Path) -> list[str]:
    """Return the command that starts a training in `directory`, or resumes the run in it."""
    if os.path.lexists(directory / runs.CONFIG):
        steps = max(training.steps, runs.read_config(directory).steps)
        return [sys.executable, "-m", "agents.train", "--resume", str(directory), "--steps", str(steps)]
    place = ["--out", str(directory), "--parallel", training.parallel]  # not part of `command`
    return [sys.executable, *shlex.split(command(training))[1:], *place]


def run_missing(trainings: Mapping[Path, TrainConfig], parallel: int) -> None:
    """Start or resume every unfinished run, `parallel` at a time; the others continue if one fails.

    Args:
        trainings: Configurations by run directory.
        parallel: Maximum number of concurrent processes.

    Raises:
        ValueError: A directory holds a run of another method. Or runs failed; raised after all runs have ended, and the
            message names their directories.
    """
    for directory, training in trainings.items():
        there = os.path.lexists(directory / runs.CONFIG)
        if there and (method := runs.read_config(directory).method) != training.method:
            raise ValueError(f"{directory} holds a run of {method}, not of {training.method}; move it away")
    waiting = [
        (directory, start_or_resume(training, directory))
        for directory, training in trainings.items()
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
    except KeyboardInterrupt:  # the runs receive it too and write their checkpoints
        for _, process in running:
            process.wait()
        raise
    if failed:
        raise ValueError(f"{', '.join(failed)} failed; the same command tries again what is missing")
