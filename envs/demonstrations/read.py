"""Read demonstrations from files of any format."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import h5py

from envs.demonstrations.arrays import NUMPY, read_arrays
from envs.demonstrations.dataset import Dataset, Keys, select, sources
from envs.demonstrations.minari import dataset_path, read_minari
from envs.demonstrations.robomimic import read_robomimic
from envs.demonstrations.trajectory import Trajectory
from envs.files import open_regular

MINARI = "minari:"  # prefix of the identifier of a Minari data set
Read = Callable[[Path, Sequence[str] | None, str | None], Dataset]


def read_demonstrations(path: str | Path, keys: Keys | None = None, filter_key: str | None = None) -> list[Trajectory]:
    """Read demonstrations of any task, as recorded.

    The format follows from the content: HDF5 of robomimic and robosuite (`envs.demonstrations.robomimic`), a directory
    or an identifier of a Minari data set (`envs.demonstrations.minari`), or NumPy (`envs.demonstrations.arrays`).

    Args:
        path: File, directory, or identifier of a Minari data set, "minari:push/slot-v0" or, where no file has this
            name, "push/slot-v0".
        keys: For each observation, its name in the file, or several names whose arrays are concatenated along the last
            axis. None reads all observations under their own names.
        filter_key: Name of a set of demonstrations in the file ("train", …). None reads all.

    Returns:
        Demonstrations in the order of their numbers.

    Raises:
        ValueError: The file does not exist or is invalid, or something that was asked for is not in it; the message
            (one line) names it.
    """
    return read_dataset(path, keys, filter_key).trajectories


def read_dataset(path: str | Path, keys: Keys | None = None, filter_key: str | None = None) -> Dataset:
    """Read demonstrations and the description of their environment; see `read_demonstrations`."""
    found, read = _find(path)
    dataset = read(found, None if keys is None else sources(keys), filter_key)
    if keys is None:
        return dataset
    trajectories = [select(trajectory, keys, f"{path}: {trajectory.name}") for trajectory in dataset.trajectories]
    return replace(dataset, trajectories=trajectories)


def is_dataset(path: Path) -> bool:
    """Return whether a path is the directory of a Minari data set."""
    return any((directory / "metadata.json").is_file() for directory in (path, path / "data"))


def _find(path: str | Path) -> tuple[Path, Read]:
    """Return the file or directory and the function that reads it."""
    if str(path).startswith(MINARI):
        path = dataset_path(str(path).removeprefix(MINARI))
        if not path.is_dir():
            raise ValueError(f"{path}: no such Minari data set")
        return path, read_minari
    given = Path(path)
    if given.is_dir():
        return given, read_minari
    try:
        with open_regular(given) as file:
            start = file.read(len(max(NUMPY, key=len)))
    except FileNotFoundError as error:
        named = dataset_path(str(path))
        if named.is_dir():
            return named, read_minari
        raise ValueError(f"{path}: no such file, and no such Minari data set") from error
    if start.startswith(NUMPY):
        return given, read_arrays
    if start and not h5py.is_hdf5(given):
        raise ValueError(f"{path}: is neither HDF5 nor NumPy nor the directory of a Minari data set")
    return given, read_robomimic
