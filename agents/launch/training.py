"""One training of a comparison: whether it is missing, and how it is started or resumed."""

import dataclasses
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from agents import runs
from agents.config import METHODS, TrainConfig
from agents.config.command import command
from agents.methods.encoder import encoder_name
from agents.tasks import get_task
from agents.tasks.named import named_words
from agents.train import train


def is_finished(directory: Path, steps: int) -> bool:
    """Return whether the directory holds the result of a run of at least `steps` environment steps."""
    return os.path.lexists(directory / runs.RESULT) and runs.read_config(directory).steps >= steps


def missing(trainings: Mapping[Path, TrainConfig]) -> dict[Path, TrainConfig]:
    """Return the trainings that are not finished.

    Args:
        trainings: Configurations by run directory.

    Raises:
        ValueError: A directory holds a run of something else than its name says in this version.
    """
    for directory, training in trainings.items():
        if not os.path.lexists(directory / runs.CONFIG):
            continue
        for there, wanted in zip(identity(runs.read_config(directory)), identity(training), strict=True):
            if there != wanted:
                raise ValueError(f"{directory} holds a run of {there}, not of {wanted}; move it away")
    return {directory: one for directory, one in trainings.items() if not is_finished(directory, one.steps)}


def identity(config: TrainConfig) -> tuple[str, ...]:
    """Return what the name of a run stands for, besides its seed and the settings that are varied.

    Task, observation, number of grids, method, preset, encoder, and form of the potential, whose default may change.
    """
    form = config.potential.combine if METHODS[config.method].potential else "no potential"
    grids = f"{config.grids} grid{'s' * (config.grids > 1)}"
    return config.task, config.obs, grids, config.method, f"preset {config.preset}", encoder_name(config), form


def start_or_resume(training: TrainConfig, directory: Path) -> list[str]:
    """Return the command that starts a training in `directory`, or resumes the run in it."""
    if os.path.lexists(directory / runs.CONFIG):
        stored = runs.read_config(directory)
        steps = str(max(training.steps, stored.steps))
        named = named_words(stored).split()
        return [sys.executable, "-m", "agents.train", "--resume", str(directory), "--steps", steps, *named]
    further = ["--out", str(directory), "--parallel", training.parallel]  # not part of `command`
    further += ["--track", *training.track] * bool(training.track)
    return [sys.executable, *shlex.split(command(training, get_task(training.task).settings))[1:], *further]


def run_training(training: TrainConfig, directory: Path, place: Path) -> None:
    """Start a training in this process, or resume it from its last checkpoint.

    Args:
        training: Configuration.
        directory: Run directory on a file system that all machines share.
        place: Working directory, to which relative paths refer.

    Raises:
        ValueError, OSError: As `agents.train.train`.
    """
    os.chdir(place)
    if os.path.lexists(directory / runs.CONFIG):
        stored = runs.read_config(directory)
        train(dataclasses.replace(stored, resume=directory, steps=max(training.steps, stored.steps)))
    else:
        train(dataclasses.replace(training, out=directory))


def failure(failed: list[Path]) -> ValueError:
    """Return the error that names the directories of failed runs."""
    return ValueError(f"{', '.join(map(str, failed))} failed; the same command tries again what is missing")
