"""Read arrays, numbers and strings from untrusted HDF5 files.

Such a file may refer to other files (links, external storage, virtual datasets) and declare arrays larger than the
memory. References to other files are refused, nothing is executed, and sizes are checked before memory is allocated:
all required arrays of a file are declared first and read afterwards.
"""

import math
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from envs.demonstrations.trajectory import Shape, expected

BUDGET = 2**30  # total size of all arrays of a file [bytes]


def has(parent: h5py.Group, key: str) -> bool:
    """Return whether a group has a member of this name; unlike ``in``, this does not follow links."""
    return bool(parent.id.links.exists(key.encode()))


def read(dataset: h5py.Dataset) -> np.ndarray:
    """Return the numbers of a declared array, as float32 if stored as such, otherwise as float64."""
    native = dataset.dtype in (np.dtype("float32"), np.dtype("float64"))
    if native or dataset.dtype.kind == "b":  # HDF5 does not convert booleans
        return np.asarray(dataset[()]) if native else np.asarray(dataset[()], float)
    return np.asarray(dataset.astype(np.float64)[()])


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
        return self._child(parent, key, where, h5py.Group, "a group")

    def declared(self, parent: h5py.Group, key: str, shape: Shape, where: str) -> h5py.Dataset:
        """Return an array of numbers, to be read by `read`, with any number of rows of the given shape.

        Its memory counts towards the limit: the numbers as they are read, and once more as float64, in which they are
        checked.
        """
        dataset = self._child(parent, key, where, h5py.Dataset, "an array")
        found = dataset.shape or ()
        fits = len(found) == len(shape) + 1 and all(
            size > 0 if wanted is None else size == wanted for size, wanted in zip(found[1:], shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{where}: shape is {found}, not {expected(shape)}")
        if dataset.dtype.kind not in "fiub":
            raise ValueError(f"{where}: holds {dataset.dtype}, not numbers")
        self._take(dataset, (4 if dataset.dtype == np.dtype("float32") else 8) + 8, where)
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
        dataset = self._child(parent, key, where, h5py.Dataset, "an array")
        if h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
            raise ValueError(f"{where}: is no list of names")
        if len(dataset) > most:
            raise ValueError(f"{where}: has {len(dataset)} names, but there are {most} demonstrations")
        self._take(dataset, dataset.dtype.itemsize, where)
        return [dataset[i].decode(errors="replace") for i in range(len(dataset))]

    def _take(self, dataset: h5py.Dataset, each: int, where: str) -> None:
        """Count the memory of a dataset, `each` bytes per entry, towards the limit."""
        if dataset.is_virtual or dataset.external:
            raise ValueError(f"{where}: its numbers lie in another file; copy them into this one")
        needed = max(math.prod(dataset.shape), math.prod(dataset.chunks or (0,))) * max(each, dataset.dtype.itemsize)
        if needed > self.remaining:
            raise ValueError(
                f"{where}: {dataset.shape} numbers are more than the {BUDGET >> 20} MiB that a file may hold"
            )
        self.remaining -= needed

    @staticmethod
    def _child(parent: h5py.Group, key: str, where: str, kind: type, noun: str) -> Any:
        if not has(parent, key):
            raise ValueError(f"{where}: is missing")
        if parent.id.links.get_info(key.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{where}: is a link; copy what it points to into the file")
        child = parent[key]
        if not isinstance(child, kind):
            raise ValueError(f"{where}: is missing; what is there is not {noun}")
        return child
