"""The content of a file of demonstrations, whatever its format, and the choice of observations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from envs.demonstrations.trajectory import Trajectory

OBSERVATION = "observation"  # name of an observation where the file has none
Keys = Mapping[str, str | Sequence[str]]  # name of an observation → names in the file, which are concatenated


class MissingError(ValueError):
    """A file does not hold an observation that was asked for."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Demonstrations and the description of their environment.

    Attributes:
        layout: Format of the file.
        trajectories: Demonstrations.
        env_args: Description of the environment as in robomimic: env_name, type (1 robosuite, 2 Gymnasium) and
            env_kwargs; empty if it is unknown.
    """

    layout: str
    trajectories: list[Trajectory]
    env_args: dict[str, Any]


def sources(keys: Keys) -> list[str]:
    """Return the names in the file that `keys` mentions."""
    return list(dict.fromkeys(source for named in keys.values() for source in _listed(named)))


def select(trajectory: Trajectory, keys: Keys, where: str) -> Trajectory:
    """Return a demonstration that has the observations of `keys` only.

    Several arrays are concatenated along their last axis; an array of numbers, shape (H + 1,), is one column.

    Raises:
        ValueError: Arrays cannot be concatenated.
    """
    observations = {}
    for name, named in keys.items():
        arrays = [trajectory.observations[source] for source in _listed(named)]
        if len(arrays) > 1:
            arrays = [rows[:, None] if rows.ndim == 1 else rows for rows in arrays]
        if len({rows.shape[:-1] for rows in arrays}) > 1:
            shapes = ", ".join(str(rows.shape) for rows in arrays)
            raise ValueError(f"{where}: {name}: arrays of shapes {shapes} cannot be concatenated along the last axis")
        observations[name] = np.concatenate(arrays, axis=-1) if len(arrays) > 1 else arrays[0]
    return replace(trajectory, observations=observations)


def renaming(path: Any, name: str) -> str:
    """Return the remedy where a file has an observation under another name, for the end of a message."""
    return f"; `python -m envs.demonstrations convert {path} FILE.hdf5 --keys {name}=NAME` renames one"


def _listed(named: str | Sequence[str]) -> Sequence[str]:
    return [named] if isinstance(named, str) else named
