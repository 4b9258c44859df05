"""Trainings in separate local processes; interrupted runs are resumed."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from agents.config import TrainConfig
from agents.launch.training import failure, start_or_resume
from agents.launch.watch import Watch
from agents.progress import say

SECONDS_BETWEEN_LOOKS = 0.2  # polling interval of the processes [s]


def run_locally(trainings: Mapping[Path, TrainConfig], budget: int) -> None:
    """Start or resume every run; the others continue if one fails. Their output goes to a file beside the directory.

    Args:
        trainings: Configurations of the unfinished runs by directory.
        budget: Number of threads that the processes may have together; one process runs even if it takes more.

    Raises:
        ValueError: Runs failed; raised after all runs have ended, and the message names their directories.
    """
    waiting = {directory: start_or_resume(training, directory) for directory, training in trainings.items()}
    running: dict[Path, subprocess.Popen] = {}
    failed: list[Path] = []
    with closing(Watch(trainings)) as watch:
        try:
            while waiting or running:
                while waiting and (not running or _threads(trainings, [*running, next(iter(waiting))]) <= budget):
                    directory = next(iter(waiting))
                    try:
                        running[directory] = _start(waiting.pop(directory), directory, trainings[directory].threads)
                    except OSError as error:
                        watch.ended(directory)
                        failed.append(directory)
                        print(f"failed to start: {directory} ({error})", file=sys.stderr)
                time.sleep(SECONDS_BETWEEN_LOOKS)
                watch.look(running)
                for directory in [path for path, process in running.items() if process.poll() is not None]:
                    status = running.pop(directory).returncode
                    watch.ended(directory)
                    if status != 0:
                        failed.append(directory)
                        print(f"failed with status {status}: {directory}{_last_words(directory)}", file=sys.stderr)
        except KeyboardInterrupt:  # the runs receive it too and write their checkpoints
            for process in running.values():
                process.wait()
            raise
    if failed:
        raise failure(failed)


def output_file(directory: Path) -> Path:
    """Return the file that receives the output of the training in `directory`."""
    return directory.with_name(f"{directory.name}.log")


def _threads(trainings: Mapping[Path, TrainConfig], directories: list[Path]) -> int:
    return sum(trainings[directory].threads for directory in directories)


def _start(line: list[str], directory: Path, threads: int) -> subprocess.Popen:
    say(f"running {shlex.join(line[1:])}")
    output_file(directory).parent.mkdir(parents=True, exist_ok=True)
    with output_file(directory).open("a") as output:
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        return subprocess.Popen(line, env=environment, stdout=output, stderr=subprocess.STDOUT)


def _last_words(directory: Path) -> str:
    lines = output_file(directory).read_text(errors="replace").strip().splitlines()
    return f" ({lines[-1]})" if lines else ""
