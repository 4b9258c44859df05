"""Checkpoints of a training: everything that the next step depends on, as data, written atomically.

A checkpoint is a directory `step-N` with

    agent.pt                          weights, optimisers, counters, random states, state of the environments
    buffer.NAME.npy                   filled rows of the replay buffer, one file per array; next observations only
                                      where they differ from the next row (NAME_apart marks these rows)
    demonstrations.NAME.npy           filled rows of the buffer of demonstrated transitions
    manifest.json                     SHA-256 of each file

The directory is written under a hidden name and renamed when all files are on the disk. Damage is detected by the
checksums.
"""

import hashlib
import io
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from agents.collecting.stateful import Stateful
from agents.finite import check_weights
from envs.files import discard, open_regular, read_regular, sync
from shaping.tensors import read_tensors, tensor_bytes

KEPT = 2
AGENT, MANIFEST = "agent.pt", "manifest.json"


class Agent(Stateful, Protocol):
    """Agent that can be saved: its state covers everything except the rows of its replay buffers."""

    policy: Any
    num_timesteps: int
    device: Any

    def buffers(self) -> dict[str, Any]:
        """Return the replay buffers by name."""


class DamagedError(ValueError):
    """The files of a checkpoint differ from those that were written."""


def save_checkpoint(model: Agent, directory: Path, run: dict[str, Any] | None = None) -> Path:
    """Write a checkpoint of `model` and its environments, keep the last two checkpoints, and return its path.

    Args:
        model: Agent between two steps, with its transitions stored and its gradient steps done.
        directory: Existing directory of checkpoints. It is not created if it was removed during the training, because
            the rest of the run directory is then missing too.
        run: Additional state of the run: tensors and plain data.

    Raises:
        NotFiniteError: A weight is not finite; nothing is written.
        OSError: The disk is full or the directory cannot be written; earlier checkpoints are kept.
    """
    check_weights(model.policy)
    target = directory / f"step-{model.num_timesteps:09d}"
    partial = directory / f".{target.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        checksums = {AGENT: _write(partial / AGENT, tensor_bytes({**model.get_state(), "run": run}))}
        for part, buffer in model.buffers().items():
            for name, rows in buffer.filled().items():
                file = f"{part}.{name}.npy"
                checksums[file] = _write(partial / file, _npy_header(rows), rows.data)
        _write(partial / MANIFEST, json.dumps(checksums, indent=2).encode())
        sync(partial)
        if target.exists():
            discard(target)
        partial.replace(target)
        sync(directory)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise OSError(error.errno, error.strerror, str(target)) from error
    for old in list_checkpoints(directory)[:-KEPT]:
        discard(old)
    return target


def list_checkpoints(directory: Path) -> list[Path]:
    """Return the checkpoints in `directory`, oldest first; an empty list if the directory does not exist.

    Raises:
        OSError: `directory` is not a directory, or cannot be listed.
    """
    if not os.path.lexists(directory):
        return []
    return sorted(path for path in directory.iterdir() if re.fullmatch(r"step-\d{9}", path.name))


def step_of(path: Path) -> int:
    """Return the environment step of a checkpoint."""
    return int(path.name.removeprefix("step-"))


def newest_intact(directory: Path) -> tuple[Path | None, dict[Path, str]]:
    """Find the newest intact checkpoint in `directory`.

    Returns:
        The checkpoint or None, and the damage of each newer checkpoint.
    """
    damages: dict[Path, str] = {}
    for path in reversed(list_checkpoints(directory)):
        try:
            verify(path)
        except DamagedError as damage:
            damages[path] = str(damage)
        else:
            return path, damages
    return None, damages


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it is neither loaded nor removed."""
    aside = path.with_name(f"damaged-{path.name}")
    if aside.exists():
        discard(aside)
    path.replace(aside)


def verify(path: Path) -> set[str]:
    """Check the files of a checkpoint against its manifest.

    Returns:
        The names of the files.

    Raises:
        DamagedError: A file is missing or has another checksum; the message names it.
        PermissionError: A file cannot be read, so its checksum is unknown.
    """
    try:
        checksums = json.loads(read_regular(path / MANIFEST))
        wrong = [name for name, checksum in checksums.items() if _checksum(path / name) != checksum]
    except PermissionError:
        raise
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged ({MANIFEST} or a file that it lists: {error})") from error
    if AGENT not in checksums or wrong:
        raise DamagedError(f"{path} is damaged ({wrong[0] if wrong else AGENT} is not what was written)")
    return set(checksums)


def load_checkpoint(model: Agent, path: Path) -> dict[str, Any]:
    """Restore the state of `model`, built with the same configuration, and of its environments from a checkpoint.

    Returns:
        The additional state of the run.

    Raises:
        DamagedError: The checkpoint is damaged.
        ValueError: The checkpoint belongs to another configuration, or to another version of the program.
    """
    written = verify(path)
    files = {part: {name: path / f"{part}.{name}.npy" for name in b.filled()} for part, b in model.buffers().items()}
    absent = [file.name for named in files.values() for file in named.values() if file.name not in written]
    if absent:
        raise ValueError(
            f"{path} has no {absent[0]}: another version of the program wrote it; train anew with another --out"
        )
    try:
        state = read_tensors(path / AGENT, model.device)
        for part, buffer in model.buffers().items():
            rows = {name: np.load(file, mmap_mode="r", allow_pickle=False) for name, file in files[part].items()}
            buffer.fill(rows, state["position"] if part == "buffer" else 0)
        model.set_state(state)
    except Exception as error:  # manipulated files can make the readers raise almost any error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} does not belong to this configuration: {reason:.160}") from error
    return state["run"] or {}


def _write(path: Path, *parts: Any) -> str:
    """Write bytes to a new file, flush it to the disk, and return their SHA-256."""
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for part in parts:
            file.write(part)
            digest.update(part)
    sync(path)
    return digest.hexdigest()


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _npy_header(rows: np.ndarray) -> bytes:
    """Return the header of an .npy file; `numpy.save` is not used, because its error for a full disk is unclear."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(rows))
    return stream.getvalue()
