"""Plain arrays, numbers and words out of HDF5 files of unknown origin.

Such a file may name other files (links, external storage, virtual datasets) and declare arrays that no machine holds.
Nothing is followed out of the file, nothing is executed, and sizes are checked before memory is taken: arrays are
declared first, all that are wanted of a file, and read after.
"""

import math
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from envs.demonstrations.trajectory import expected

BUDGET = 2**30  # of all arrays of a file together [bytes]
Shape = tuple[int | None, ...]  # None is any number, at least 1


def has(parent: h5py.Group, key: str) -> bool:
    """Tell whether a group has a member of this name; ``in`` would follow links to find out."""
    return bool(parent.id.links.exists(key.encode()))


def read(dataset: h5py.Dataset) -> np.ndarray:
    """Return the numbers of a declared array, in single precision if they are stored so, else in double."""
    native = dataset.dtype in (np.dtype("float32"), np.dtype("float64"))
    if native or dataset.dtype.kind == "b":  # HDF5 does not convert these
        return np.asarray(dataset[()]) if native else np.asarray(dataset[()], float)
    return np.asarray(dataset.astype(np.float64)[()])


@dataclass
class Reader:
    """Reads the parts of one open file.

    Every method takes what to call the part in a message, and raises a ValueError of one line that starts with it.

    Attributes:
        remaining: What further arrays may take [bytes].
    """

    remaining: int = BUDGET

    def group(self, parent: h5py.Group, key: str, where: str) -> h5py.Group:
        """Return a group of the file itself."""
        return self._child(parent, key, where, h5py.Group, "a group")

    def declared(self, parent: h5py.Group, key: str, shape: Shape, where: str) -> h5py.Dataset:
        """Return an array of numbers with any number of rows of the given shape, for `read`.

        It counts with what it takes in memory: the numbers as they are read, and once more in double precision, in
        which they are checked.
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
        """Return an attribute of `size` finite numbers; None if there is none."""
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
        """Return an attribute that counts something; None if there is none."""
        values = self.numbers(parent, key, 1, where)
        if values is None:
            return None
        number = float(values[0])
        if not number.is_integer() or not 0 <= number < 2**53:
            raise ValueError(f"{where}: is {number:g}, not a whole number from 0 on")
        return int(number)

    def text(self, parent: h5py.Group, key: str, where: str) -> str | None:
        """Return an attribute that is a text; None if there is none."""
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
        """Count what a dataset takes, `each` bytes an entry."""
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
