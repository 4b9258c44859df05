"""Checkpoints of a training: everything that the next step depends on, as data, whole or not there.

A checkpoint is a directory `step-N` with

    agent.pt                          weights, optimisers, counters, random states, the environment's state
    buffer.NAME.npy                   the filled rows of the replay buffer, one array each; of what follows a row,
                                      what is not the next row, and for which rows (NAME_apart)
    demonstrations.NAME.npy           those of its demonstrated part
    manifest.json                     SHA-256 of each file

It is written under a hidden name and renamed once it is on the disk. A damaged one is told by its checksums.
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
    """What is saved: an agent, whose state covers all that it learns and acts with, and its stored transitions."""

    policy: Any
    num_timesteps: int
    device: Any

    def buffers(self) -> dict[str, Any]:
        """The parts of the replay buffer, by name."""


class DamagedError(ValueError):
    """A checkpoint whose files are not those that were written."""


def save_checkpoint(model: Agent, directory: Path, run: dict[str, Any] | None = None) -> Path:
    """Write a checkpoint of `model` and its environment below `directory`, keep the last two, return its path.

    Args:
        model: Between two steps, its transition stored and learned from.
        directory: Must be there: one that was removed is not made again, for what lay beside it is gone too.
        run: What the run keeps beside the agent: tensors and plain data.

    Raises:
        NotFiniteError: A weight is not finite; nothing is written.
        OSError: The disk is full, or the directory cannot be written; earlier checkpoints stay.
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
    """Checkpoints below `directory`, oldest first; none where there is no such directory.

    Raises:
        OSError: It is no directory, or cannot be listed.
    """
    if not os.path.lexists(directory):
        return []
    return sorted(path for path in directory.iterdir() if re.fullmatch(r"step-\d{9}", path.name))


def step_of(path: Path) -> int:
    """Step at which a checkpoint was written."""
    return int(path.name.removeprefix("step-"))


def newest_intact(directory: Path) -> tuple[Path | None, dict[Path, str]]:
    """Find the newest checkpoint below `directory` that is intact.

    Returns:
        The checkpoint, None without one, and what is wrong with the newer ones.
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
    """Rename a damaged checkpoint, so that it is neither used nor removed."""
    aside = path.with_name(f"damaged-{path.name}")
    if aside.exists():
        discard(aside)
    path.replace(aside)


def verify(path: Path) -> set[str]:
    """Check the files of a checkpoint against its manifest.

    Returns:
        Their names.

    Raises:
        DamagedError: One of them is missing or not what was written; names it.
        PermissionError: One of them may not be read; whether it is damaged is not known.
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
    """Put `model`, built with the same configuration, and its environment where `save_checkpoint` found them.

    Returns:
        What the run kept beside the agent.

    Raises:
        DamagedError: The checkpoint is damaged.
        ValueError: It belongs to another configuration, or to another version of the program.
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
    except Exception as error:  # files that were changed on purpose can make the readers raise almost anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} does not belong to this configuration: {reason:.160}") from error
    return state["run"] or {}


def _write(path: Path, *parts: Any) -> str:
    """Write bytes to a new file, on the disk when this returns, and return their SHA-256."""
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
    """What precedes the numbers in NumPy's file; `numpy.save` tells nothing useful of a full disk."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(rows))
    return stream.getvalue()
