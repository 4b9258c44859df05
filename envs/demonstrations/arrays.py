"""Read demonstrations from NumPy files.

A ``.npy`` file holds the observations of one demonstration, shape (H + 1, …). A ``.npz`` file holds `observations`, or
one array for each observation under its own name, and optionally `actions` (H, A), `rewards` and `dones` (H,). Several
demonstrations are joined along the first axis; `episode_ends` (K,) then holds the number of observations up to the end
of each. Actions, rewards and dones may have as many rows as observations: what follows the last action of a
demonstration is then unknown, so that its last row is left out.
"""

import contextlib
import itertools
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from envs.demonstrations.dataset import OBSERVATION, Dataset, MissingError
from envs.demonstrations.hdf5 import BUDGET, damaged, is_native, size_of
from envs.demonstrations.trajectory import Trajectory, check, check_rows
from envs.files import open_regular

SIGNALS = ("actions", "rewards", "dones")
ENDS = "episode_ends"
NUMPY = (b"\x93NUMPY", b"PK\x03\x04")  # first bytes of .npy and .npz files


def read_arrays(path: Path, names: Sequence[str] | None, filter_key: str | None) -> Dataset:
    """Read the demonstrations of a NumPy file.

    Nothing is executed, since pickled objects are refused, and sizes are checked before memory is allocated.

    Args:
        path: File of one array or of several.
        names: Names of the observations to read; None reads all. `observations` is called "observation".
        filter_key: Must be None, since NumPy files have no filter keys.

    Raises:
        ValueError: The file is invalid, or something that was asked for is not in it; the message is one line.
    """
    if filter_key is not None:
        raise ValueError(f"{path}: has no filter key {filter_key!r}; NumPy files have none")
    arrays = _load(path, names)
    ends = arrays.pop(ENDS, None)
    signals = {key: arrays.pop(key) for key in SIGNALS if key in arrays}
    if not arrays:
        raise ValueError(f"{path}: holds no observations")
    first, rows = next((name, len(values)) for name, values in arrays.items())
    for name, values in arrays.items():
        if len(values) != rows:
            raise ValueError(f"{path}: {name}: has {len(values)} rows, but {first} has {rows}")
    bounds = [(0, rows)] if ends is None else _bounds(ends, rows, f"{path}: {ENDS}")
    for key, values in signals.items():
        if len(values) not in (rows, rows - len(bounds)):
            raise ValueError(
                f"{path}: {key}: has {len(values)} rows, not {rows - len(bounds)}; observations have one more than "
                "steps in each demonstration"
            )
    trajectories = []
    for i, (start, end) in enumerate(bounds):
        observations = {name: values[start:end] for name, values in arrays.items()}
        steps: dict[str, Any] = {}
        for key, values in signals.items():
            before = 0 if len(values) == rows else i  # one row fewer for each earlier demonstration
            steps[key] = values[start - before : end - 1 - before]
        trajectories.append(Trajectory(observations, name=f"demo_{i}", **steps))
        check(trajectories[-1], f"{path}: demo_{i}")
    return Dataset("NumPy", trajectories, {})


def _bounds(ends: np.ndarray, rows: int, where: str) -> list[tuple[int, int]]:
    """Return the first row and the end of the observations of each demonstration."""
    check_rows(ends, (), where)
    if (np.diff(ends, prepend=0) < 1).any() or (ends % 1).any() or ends[-1] != rows:
        raise ValueError(f"{where}: must rise by whole numbers to {rows}, the number of observations")
    whole = [0, *map(int, ends)]
    return list(itertools.pairwise(whole))


def _load(path: Path, names: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Read the observations of the given names, and what else is known; numbers other than images become floats."""
    with open_regular(path) as stream:
        several = stream.read(4) == NUMPY[1]
        stream.seek(0)
        if not several:
            _chosen([OBSERVATION], names, path)
            _count(stream, str(path), 0)
            stream.seek(0)
            with _intact(path):
                return {OBSERVATION: _as_float(np.load(stream, allow_pickle=False))}
        with _intact(path):
            archive = np.load(stream, allow_pickle=False)
        with archive:
            stored = {OBSERVATION if name == "observations" else name: name for name in archive.files}
            chosen = _chosen(list(stored), names, path)
            taken = 0  # all arrays are counted before the first is read, since the limit applies to their total size
            for name in chosen:
                with _intact(path):
                    member = archive.zip.open(f"{stored[name]}.npy")
                with member:
                    taken = _count(member, f"{path}: {name}", taken)
            with _intact(path):
                return {name: _as_float(archive[stored[name]]) for name in chosen}


def _chosen(found: Sequence[str], names: Sequence[str] | None, path: Path) -> list[str]:
    known = [name for name in found if name not in (*SIGNALS, ENDS)]
    missing = [name for name in names or () if name not in known]
    if missing:
        raise MissingError(f"{path}: {missing[0]}: is missing; it has {', '.join(known) or 'no observation'}")
    return [name for name in found if names is None or name in (*names, *SIGNALS, ENDS)]


def _count(stream: BinaryIO, where: str, taken: int) -> int:
    """Check an array by its header, and add its memory to that of the arrays before it [bytes]."""
    with _intact(where):
        if np.lib.format.read_magic(stream) != (1, 0):  # later versions have longer headers, for structures of numbers
            raise ValueError("its version is not 1.0")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "fiub":
        raise ValueError(f"{where}: holds {dtype}, not numbers")
    if not shape or min(shape) < 0:
        raise ValueError(f"{where}: shape is {shape}, not (steps, …)")
    taken += math.prod(shape) * size_of(dtype, len(shape))
    if taken > BUDGET:
        raise ValueError(f"{where}: {shape} numbers are more than the {BUDGET >> 20} MiB that a file may hold")
    return taken


def _as_float(rows: np.ndarray) -> np.ndarray:
    return rows if is_native(rows.dtype, rows.ndim) else rows.astype(np.float64)


@contextlib.contextmanager
def _intact(where: str | Path) -> Iterator[None]:
    """Report an array that NumPy cannot read in one line."""
    try:
        yield
    except (
        OSError,
        EOFError,
        KeyError,
        RuntimeError,
        ValueError,
        tokenize.TokenError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise damaged(where, error) from error
