"""Read arrays, numbers and strings from untrusted HDF5 files.

Such a file may refer to other files (links, external storage, virtual datasets) and declare arrays larger than the
memory. References to other files are refused, nothing is executed, and sizes are checked before memory is allocated:
all required arrays of a file are declared first and read afterwards.
"""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from envs.demonstrations.trajectory import Shape, expected
from envs.files import check_regular

BUDGET = 2**30  # total size of all arrays of a file [bytes]


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Open a file for reading; several processes may do so at the same time.

    Raises:
        ValueError: It does not exist, is no HDF5 file, or turns out to be damaged while it is read.
    """
    _refuse_unreadable(path)
    try:
        # Some read-only file systems do not support locks.
        with h5py.File(path, "r", locking="best-effort") as file:
            yield file
    except (OSError, RuntimeError, KeyError) as error:
        raise damaged(path, error) from error


def _refuse_unreadable(path: Path) -> None:
    try:
        check_regular(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"{path}: no such file; python -m envs.record writes demonstrations") from error
    except OSError as error:  # an invalid name
        raise ValueError(f"{path}: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path}: no permission to read it")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    if not h5py.is_hdf5(path):
        raise ValueError(f"{path}: not an HDF5 file; python -m envs.demonstrations convert writes one")


def damaged(where: str | Path, error: Exception) -> ValueError:
    """Return the error, in one line, of a file that a library cannot read."""
    return ValueError(f"{where}: truncated or damaged ({' '.join(str(error).split()) or type(error).__name__})")


def members(group: Mapping[str, Any]) -> list[str]:
    """Return the names of the members of a group; those that are no text are skipped."""
    return [name for name in group if isinstance(name, str)]


def has(parent: h5py.Group, key: str) -> bool:
    """Return whether a group has a member of this name; unlike ``in``, this does not follow links."""
    return bool(parent.id.links.exists(key.encode()))


def is_native(dtype: np.dtype, ndim: int) -> bool:
    """Return whether numbers are kept as stored: float32, float64, and images of bytes, shape (steps, H, W, C)."""
    return dtype in (np.dtype("float32"), np.dtype("float64")) or (dtype == np.uint8 and ndim == 4)


def size_of(dtype: np.dtype, ndim: int) -> int:
    """Return the memory that one number takes: as it is read, and once more as it is checked or joined [bytes]."""
    read = dtype.itemsize if is_native(dtype, ndim) else 8
    return read + (1 if read == 1 else 8)


def read(dataset: h5py.Dataset, rows: slice = slice(None)) -> np.ndarray:
    """Return rows of a declared array, as they are stored (`is_native`) or as float64."""
    native = is_native(dataset.dtype, dataset.ndim)
    if native or dataset.dtype.kind == "b":  # HDF5 does not convert booleans
        return np.asarray(dataset[rows], None if native else float)
    return np.asarray(dataset.astype(np.float64)[rows])


@dataclass
class Reader:
    """Reader of one open file, with a limit on the total size of its arrays.

    Every method takes `where`, the name of the part in messages, and raises a ValueError of one line that starts with
    it.

    Attributes:
        remaining: Size left for further arrays [bytes].
    """

    remaining: int = BUDGET

    def group(self, parent: h5py.Group, key: str, where: str) -> h5py.Group:
        """Return a group; it must be part of this file."""
        return self.member(parent, key, where, h5py.Group, "a group")

    def declared(
        self, parent: h5py.Group, key: str, shape: Shape | None, where: str, last: bool = False
    ) -> h5py.Dataset:
        """Return an array of numbers, to be read by `read`, with any number of rows of the given shape.

        Its memory (`size_of`) counts towards the limit. None is any shape. With `last` only the last row is to be read.
        """
        dataset = self.member(parent, key, where, h5py.Dataset, "an array")
        found = dataset.shape or ()
        shape = (None,) * (len(found) - 1) if shape is None else shape
        fits = len(found) == len(shape) + 1 and all(
            size > 0 if wanted is None else size == wanted for size, wanted in zip(found[1:], shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{where}: shape is {found}, not {expected(shape)}")
        if dataset.dtype.kind not in "fiub":
            raise ValueError(f"{where}: holds {dataset.dtype}, not numbers")
        self._take(dataset, size_of(dataset.dtype, dataset.ndim), where, found[1:] if last else found)
        return dataset

    def numbers(self, parent: h5py.Group, key: str, size: int, where: str) -> np.ndarray | None:
        """Return an attribute of `size` finite numbers; None if it is missing."""
        if key not in parent.attrs:
            return None
        found = parent.attrs.get_id(key)
        shape = found.shape or ()
        if found.dtype.kind not in "fiub" or shape not in ((size,), *([()] if size == 1 else [])):
            raise ValueError(f"{where}: is no {'number' if size == 1 else f'row of {size} numbers'}")
        values = np.asarray(parent.attrs[key], float).reshape(-1)
        if values.shape != (size,) or not np.isfinite(values).all():
            raise ValueError(f"{where}: is {values.tolist()}, not {size} finite number{'s' if size > 1 else ''}")
        return values

    def count(self, parent: h5py.Group, key: str, where: str) -> int | None:
        """Return an attribute that is a whole number of at least 0; None if it is missing."""
        values = self.numbers(parent, key, 1, where)
        if values is None:
            return None
        number = float(values[0])
        if not number.is_integer() or not 0 <= number < 2**53:
            raise ValueError(f"{where}: is {number:g}, not a whole number from 0 on")
        return int(number)

    def text(self, parent: h5py.Group, key: str, where: str) -> str | None:
        """Return an attribute that is a string; None if it is missing."""
        if key not in parent.attrs:
            return None
        found = parent.attrs.get_id(key)
        if h5py.check_string_dtype(found.dtype) is None or found.shape != ():
            raise ValueError(f"{where}: is no text")
        value = parent.attrs[key]
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

    def names(self, parent: h5py.Group, key: str, most: int, where: str) -> list[str]:
        """Return a list of at most `most` names."""
        dataset = self.member(parent, key, where, h5py.Dataset, "an array")
        if h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
            raise ValueError(f"{where}: is no list of names")
        if len(dataset) > most:
            raise ValueError(f"{where}: has {len(dataset)} names, but there are {most} demonstrations")
        self._take(dataset, dataset.dtype.itemsize, where, dataset.shape)
        return [dataset[i].decode(errors="replace") for i in range(len(dataset))]

    def _take(self, dataset: h5py.Dataset, each: int, where: str, shape: tuple[int, ...]) -> None:
        """Count the memory of a part of the given shape, `each` bytes per entry, towards the limit."""
        if dataset.is_virtual or dataset.external:
            raise ValueError(f"{where}: its numbers lie in another file; copy them into this one")
        needed = max(math.prod(shape), math.prod(dataset.chunks or (0,))) * max(each, dataset.dtype.itemsize)
        if needed > self.remaining:
            raise ValueError(f"{where}: {shape} numbers are more than the {BUDGET >> 20} MiB that a file may hold")
        self.remaining -= needed

    @staticmethod
    def member(parent: h5py.Group, key: str, where: str, kind: type | tuple[type, ...], noun: str) -> Any:
        """Return a member of one of the given kinds, called `noun` in messages; it must be part of this file."""
        if not has(parent, key):
            raise ValueError(f"{where}: is missing")
        if parent.id.links.get_info(key.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{where}: is a link; copy what it points to into the file")
        child = parent[key]
        if not isinstance(child, kind):
            raise ValueError(f"{where}: is missing; what is there is not {noun}")
        return child
