"""Read the demonstrations of a task."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from envs.demonstrations.dataset import MissingError, renaming
from envs.demonstrations.hdf5 import Reader, opened
from envs.demonstrations.read import MINARI, is_dataset, read_demonstrations
from envs.demonstrations.robomimic import read_trajectories
from envs.demonstrations.success import Success, first_success
from envs.demonstrations.trajectory import PUSH_SHAPES, Bounds, Shape, Trajectory, check_bounds, check_rows

PUSH_BOUNDS = (-np.ones(2), np.ones(2))


def load_demonstrations(
    path: str | Path,
    obs: str | None = None,
    filter_key: str | None = None,
    shapes: Mapping[str, Shape] = PUSH_SHAPES,
    success: Success | None = None,
    states: bool = False,
    actions: Bounds | None = None,
    replayed: bool = False,
) -> list[Trajectory]:
    """Read a file of demonstrations of a task and validate it.

    Several processes may read one file at the same time, and the file may be read-only.

    Args:
        path: HDF5 file; for one observation also a NumPy file, or the directory or the identifier of a Minari
            data set, "minari:push/slot-v0".
        obs: Observation that every demonstration must have; if None, any one of `shapes` is accepted.
        filter_key: Name of a `mask` of the file; only the demonstrations that it lists are returned. None returns all.
        shapes: Shape of one row of every observation that is read, by name; other observations are ignored. None in
            a shape is any size of at least 1. Default: the pushing tasks.
        success: Goal set of the task, see `first_success`; each demonstration is truncated at its first success, and a
            line is printed for each that was longer. If None, demonstrations are returned as recorded.
        states: Whether to read the states and the model of the simulator too, if they were recorded.
        actions: Lower and upper bound of an action, shape (A,) each; None is −1 and 1 for two numbers.
        replayed: Whether a demonstration may lack `obs` if its states were recorded, from which it can be made; they
            are read then.

    Returns:
        Demonstrations in the order of their numbers, without their recorded rewards and dones.

    Raises:
        ValueError: The file or the filter key does not exist, the file is damaged, or a demonstration does not follow
            the layout; the message (one line) names file, demonstration and key.
    """
    path = Path(path)
    if obs is not None and obs not in shapes:
        raise ValueError(f"unknown observation {obs!r}; known observations: {', '.join(shapes)}")
    bounds = PUSH_BOUNDS if actions is None else actions

    def choose(found: Sequence[str], where: str) -> dict[str, Shape]:
        names = [name for name in shapes if name in found]
        if obs is None and not names:
            raise ValueError(f"{where}: has none of {', '.join(shapes)}")
        if obs is not None and obs not in names and not (replayed and names):
            raise ValueError(
                f"{where}/{obs}: is missing; it has {', '.join(found) or 'no observation'}{renaming(path, obs)}"
            )
        return {name: shapes[name] for name in names}

    if obs is not None and (path.suffix in (".npz", ".npy") or str(path).startswith(MINARI) or is_dataset(path)):
        try:
            trajectories = read_demonstrations(path, {obs: obs}, filter_key)
        except MissingError as error:
            raise ValueError(f"{error}{renaming(path, obs)}") from error
        for trajectory in trajectories:
            check_rows(trajectory.observations[obs], shapes[obs], f"{path}: {trajectory.name}: {obs}")
            if trajectory.actions is not None:
                check_rows(trajectory.actions, bounds[0].shape, f"{path}: {trajectory.name}: actions")
    else:
        with opened(path) as file:
            trajectories = read_trajectories(file, Reader(), choose, filter_key, bounds[0].shape, states or replayed)
    for trajectory in trajectories:
        if obs is not None and obs not in trajectory.observations and trajectory.states is None:
            raise ValueError(f"{path}: {trajectory.name}: obs/{obs}: is missing, and so are the states to make it from")
        if trajectory.actions is not None:
            check_bounds(trajectory.actions, bounds, f"{path}: {trajectory.name}: actions")
    if success is not None:
        trajectories = [_cut(trajectory, success, str(path), obs) for trajectory in trajectories]
    return [replace(trajectory, rewards=None, dones=None) for trajectory in trajectories]


def _cut(trajectory: Trajectory, success: Success, path: str, obs: str | None) -> Trajectory:
    """Truncate a demonstration at its first success and print a line; one without success is returned unchanged."""
    end = first_success(trajectory.observations, success, trajectory.rewards, trajectory.dones)
    if end is None or end == trajectory.horizon:
        return trajectory
    of = "" if obs is None else f" of {obs} observations"
    print(f"{path}: {trajectory.name}: cut from {trajectory.horizon} to {end} steps, at the first success{of}")
    return trajectory.until(end)
