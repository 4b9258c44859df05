"""Start and resumption of a training in a run directory, with the checks before it."""

import dataclasses
import os
import shlex
from pathlib import Path
from typing import Any

from agents.config import TrainConfig, check
from agents.config.file import is_of_earlier_version
from agents.runs.checkpoint import AGENT, list_checkpoints, load_checkpoint, newest_intact, set_aside, step_of
from agents.runs.directory import CHECKPOINTS, CONFIG, POLICY, RESULT, read_config, run_name
from agents.runs.policy import check_layers
from agents.sac import SAC
from agents.tasks.named import named_words
from envs.files import remove_partial
from shaping.tensors import read_tensors


def check_resumable(directory: Path, config: TrainConfig) -> None:
    """Check that the run in `directory` can be resumed, before anything is built or written.

    A run that was killed before its first checkpoint can be resumed; it starts at step 0.

    Raises:
        ValueError: An earlier version made the run, its checkpoints are elsewhere or missing, or their networks do not
            match the configuration.
        OSError: The checkpoints cannot be listed or read.
    """
    if is_of_earlier_version(directory / CONFIG):
        raise ValueError(
            f"{directory} was trained by an earlier version and cannot be continued "
            "by this one; evaluate it, or train anew with another --out"
        )
    checkpoints = directory / CHECKPOINTS
    if checkpoints.is_symlink():
        raise ValueError(f"{checkpoints} is a symbolic link; move the checkpoints into the run directory")
    found = list_checkpoints(checkpoints)
    for path in found:
        try:
            weights = read_tensors(path / AGENT).get("policy")
        except (ValueError, FileNotFoundError, NotADirectoryError):  # damaged; an earlier one may be intact
            continue
        check_layers(weights if isinstance(weights, dict) else {}, config, path / AGENT, directory)
    if found:
        return
    finished = [name for name in (RESULT, POLICY) if os.path.lexists(directory / name)]
    if finished:
        raise ValueError(
            f"{directory} has {' and '.join(finished)}, but no checkpoint to continue from: put its "
            f"{CHECKPOINTS} back, or train anew with another --out"
        )
    others = [path.name for path in checkpoints.glob("*") if not path.name.startswith(".")]
    if others:
        raise ValueError(f"{checkpoints} holds {min(others)}, but no checkpoint; put one back, or move all of it away")


def prepare(config: TrainConfig) -> tuple[TrainConfig, Path]:
    """Return the resolved configuration and the run directory, before anything is built or written."""
    if config.resume is not None:
        stored = read_config(config.resume)
        check_resumable(config.resume, stored)
        return dataclasses.replace(stored, steps=config.steps, resume=None), config.resume
    check(config)
    directory = config.out or Path("runs") / run_name(config)
    refuse_existing(directory)
    return dataclasses.replace(config, out=directory), directory


def refuse_existing(directory: Path) -> None:
    """Check that a directory is missing or empty.

    Raises:
        FileExistsError: The directory is not empty; the message tells how to proceed.
    """
    if directory.exists() and any(not path.name.startswith(".") for path in directory.iterdir()):
        raise FileExistsError(f"{directory} exists; choose another --out; {advice(directory)}")


def advice(directory: Path) -> str:
    """Return how the run in `directory` can be resumed, or why it cannot."""
    try:
        config = read_config(directory)
        check_resumable(directory, config)
    except (ValueError, OSError) as error:
        return f"it cannot be continued: {error}"
    return f"continue it with --resume {shlex.quote(str(directory))}{named_words(config)}"


def resume(model: SAC, config: TrainConfig, directory: Path) -> dict[str, Any]:
    """Restore the model from the newest intact checkpoint, and return the additional state of the run.

    A run that was killed before its first checkpoint starts at step 0.

    Raises:
        ValueError: No checkpoint is intact, or the checkpoint has more steps than configured.
    """
    checkpoints = directory / CHECKPOINTS
    path, damages = newest_intact(checkpoints)
    for damage in damages.values():
        print(damage)
    if path is None and damages:
        raise ValueError(
            f"{directory} has no intact checkpoint; put back a copy of one, or train anew with another --out"
        )
    remove_partial(directory)
    remove_partial(checkpoints)
    if path is None:
        print(f"{directory} has no checkpoint yet; beginning at step 0")
        return {}
    if step_of(path) > config.environment_steps:
        raise ValueError(f"--steps is {config.steps}, but {directory} has {step_of(path)} already")
    run = load_checkpoint(model, path)
    for damaged in damages:
        set_aside(damaged)
    print(f"resumed {directory} at step {model.num_timesteps}")
    return run
