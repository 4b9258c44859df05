"""Read and write demonstrations in robomimic's HDF5 layout, described in `envs.demonstrations`."""

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from envs.demonstrations.hdf5 import Reader, has, read
from envs.demonstrations.success import Success, first_success
from envs.demonstrations.trajectory import PUSH_SHAPES, Bounds, Shape, Trajectory, check, check_length, check_rows
from envs.files import check_regular, check_replaceable

# Optional arrays besides observations and actions, with the shape of a row.
SIGNALS: dict[str, Shape] = {"rewards": (), "dones": ()}
SIMULATOR: dict[str, Shape] = {"states": (None,), "last_state": ()}
PUSH_BOUNDS = (-np.ones(2), np.ones(2))


def load_demonstrations(
    path: str | Path,
    obs: str | None = None,
    filter_key: str | None = None,
    shapes: Mapping[str, Shape] = PUSH_SHAPES,
    success: Success | None = None,
    states: bool = False,
    actions: Bounds | None = None,
) -> list[Trajectory]:
    """Read a file of demonstrations of a task and validate it.

    Several processes may read one file at the same time, and the file may be read-only.

    Args:
        path: HDF5 file.
        obs: Observation that every demonstration must have; if None, any one of `shapes` is accepted.
        filter_key: Name of a `mask` of the file; only the demonstrations that it lists are returned. None returns all.
        shapes: Shape of one row of every observation that is read, by name; other observations are ignored. None in
            a shape is any size of at least 1. Default: the pushing tasks.
        success: Goal set of the task, see `first_success`; each demonstration is truncated at its first success, and a
            line is printed for each that was longer. If None, demonstrations are returned as recorded.
        states: Whether to read the states and the model of the simulator too, if they were recorded.
        actions: Lower and upper bound of an action, shape (A,) each; None is −1 and 1 for two numbers.

    Returns:
        Demonstrations in the order of their numbers.

    Raises:
        ValueError: The file or the filter key does not exist, the file is damaged, or a demonstration does not follow
            the layout; the message (one line) names file, demonstration and key.
    """
    path = Path(path)
    if obs is not None and obs not in shapes:
        raise ValueError(f"unknown observation {obs!r}; known observations: {', '.join(shapes)}")
    bounds = PUSH_BOUNDS if actions is None else actions
    _refuse_unreadable(path)
    try:
        # Some read-only file systems do not support locks.
        with h5py.File(path, "r", locking="best-effort") as file:
            reader = Reader()
            data = reader.group(file, "data", f"{path}: data") if has(file, "data") else {}
            names = [name for name in data if re.fullmatch(r"demo_\d{1,9}", name)]
            if not names:
                raise ValueError(f"{path}: holds no demonstration (data/demo_0, …)")
            if filter_key is not None:
                names = _filtered(reader, file, names, filter_key, path)
            names.sort(key=lambda name: int(name[5:]))
            groups = {name: reader.group(data, name, f"{path}: {name}") for name in names}
            # All arrays are declared before the first is read, since the limit applies to their total size.
            signals = {"actions": bounds[0].shape} | SIGNALS | (SIMULATOR if states else {})
            declared = {
                name: _declared(reader, group, f"{path}: {name}", obs, shapes, signals)
                for name, group in groups.items()
            }
            arrays = {name: {key: read(found) for key, found in part.items()} for name, part in declared.items()}
            trajectories = [
                _checked(reader, groups[name], arrays[name], name, f"{path}: {name}", bounds) for name in names
            ]
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(f"{path}: truncated or damaged ({str(error).splitlines()[0]})") from error
    if success is None:
        return trajectories
    return [
        _cut(trajectory, part, success, f"{path}: {name}", obs)
        for trajectory, (name, part) in zip(trajectories, arrays.items(), strict=True)
    ]


def save_demonstrations(
    path: str | Path, trajectories: Sequence[Trajectory], env_args: dict[str, Any], overwrite: bool = False
) -> None:
    """Validate demonstrations and write them to a file atomically.

    Args:
        path: HDF5 file; its directory is created if missing.
        trajectories: Demonstrations to write.
        env_args: Arguments from which the environment was built, stored as JSON.
        overwrite: Whether to replace an existing file.

    Raises:
        ValueError: There is no demonstration, or a demonstration does not follow the layout.
        FileExistsError: The file exists and `overwrite` is not set.
    """
    path = Path(path)
    if not trajectories:
        raise ValueError(f"{path}: no demonstration to write")
    for i, trajectory in enumerate(trajectories):
        check(trajectory, f"{path}: demo_{i}")
        unnamable = [name for name in trajectory.observations if not re.fullmatch(r"[^/.\0][^/\0]*", name)]
        if unnamable:
            raise ValueError(f"{path}: demo_{i}: obs: HDF5 takes no array named {unnamable[0]!r}; rename it")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path}: exists already; choose another name or --overwrite")
    check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        with h5py.File(temporary, "w") as file:
            data = file.create_group("data")
            data.attrs["env_args"] = json.dumps(env_args)
            data.attrs["total"] = sum(trajectory.horizon for trajectory in trajectories)
            for i, trajectory in enumerate(trajectories):
                _write(data.create_group(f"demo_{i}"), trajectory)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)  # mkstemp creates files that other users cannot read
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


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
        raise ValueError(f"{path}: not an HDF5 file")


def _filtered(reader: Reader, file: h5py.File, names: list[str], filter_key: str, path: Path) -> list[str]:
    """Return the demonstrations that a filter key lists."""
    masks = reader.group(file, "mask", f"{path}: mask") if has(file, "mask") else {}
    known = sorted(masks)
    if filter_key not in known:
        raise ValueError(f"{path}: has no filter key {filter_key!r}; it has {', '.join(known) or 'none'}")
    where = f"{path}: mask/{filter_key}"
    listed = set(reader.names(masks, filter_key, len(names), where))
    missing = sorted(listed - set(names))
    if missing or not listed:
        reason = f"lists {missing[0]!r}, which is not in the file" if missing else "lists no demonstration"
        raise ValueError(f"{where}: {reason}")
    return list(listed)


def _declared(
    reader: Reader,
    group: h5py.Group,
    where: str,
    obs: str | None,
    shapes: Mapping[str, Shape],
    signals: Mapping[str, Shape],
) -> dict[str, h5py.Dataset]:
    """Declare the arrays of a demonstration; return them by their names in its group."""
    observations = reader.group(group, "obs", f"{where}: obs")
    names = [name for name in shapes if has(observations, name)]
    if obs is None and not names:
        raise ValueError(f"{where}: obs: has none of {', '.join(shapes)}")
    if obs is not None and obs not in names:
        raise ValueError(f"{where}: obs/{obs}: is missing; it has {', '.join(names) or 'no observation'}")
    arrays = {f"obs/{n}": reader.declared(observations, n, shapes[n], f"{where}: obs/{n}") for n in names}
    for key, shape in signals.items():
        if has(group, key):
            arrays[key] = reader.declared(group, key, shape, f"{where}: {key}")
    return arrays


def _checked(
    reader: Reader, group: h5py.Group, arrays: dict[str, np.ndarray], name: str, where: str, bounds: Bounds
) -> Trajectory:
    trajectory = Trajectory(
        {key[4:]: rows for key, rows in arrays.items() if key.startswith("obs/")},
        actions=arrays.get("actions"),
        grid=reader.count(group, "grid", f"{where}: grid"),
        seed=reader.count(group, "seed", f"{where}: seed"),
        end_effector=reader.numbers(group, "end_effector", 2, f"{where}: end_effector"),
        name=name,
    )
    check(trajectory, where, bounds)
    if "states" in arrays:
        check_rows(arrays["states"], (None,), f"{where}: states")
        check_length(arrays["states"], trajectory.horizon, f"{where}: states")
        model = reader.text(group, "model_file", f"{where}: model_file")
        trajectory = replace(trajectory, states=_with_last(arrays, where), model_file=model)
    for key in {"rewards", "dones"} & set(arrays):
        check_rows(arrays[key], (), f"{where}: {key}")
        check_length(arrays[key], trajectory.horizon, f"{where}: {key}")
    samples = reader.count(group, "num_samples", f"{where}: num_samples")
    if samples is not None and samples != trajectory.horizon:
        raise ValueError(f"{where}: num_samples: is {samples}, but there are {trajectory.horizon} steps")
    return trajectory


def _cut(
    trajectory: Trajectory, arrays: dict[str, np.ndarray], success: Success, where: str, obs: str | None
) -> Trajectory:
    """Truncate a demonstration at its first success and print a line; one without success is returned unchanged."""
    end = first_success(trajectory.observations, success, arrays.get("rewards"), arrays.get("dones"))
    if end is None or end == trajectory.horizon:
        return trajectory
    of = "" if obs is None else f" of {obs} observations"
    print(f"{where}: cut from {trajectory.horizon} to {end} steps, at the first success{of}")
    return trajectory.until(end)


def _with_last(arrays: dict[str, np.ndarray], where: str) -> np.ndarray:
    """Return the states, followed by the last state if it was recorded."""
    states, last = arrays["states"], arrays.get("last_state")
    if last is None:
        return states
    if last.shape != states.shape[1:]:
        raise ValueError(f"{where}: last_state: has {len(last)} numbers, but a row of states has {states.shape[1]}")
    check_rows(last[None], (None,), f"{where}: last_state")
    return np.concatenate([states, last[None]])


def _write(group: h5py.Group, trajectory: Trajectory) -> None:
    last = np.zeros(trajectory.horizon)
    last[-1] = 1.0
    arrays = {f"obs/{name}": rows for name, rows in trajectory.observations.items()}
    arrays |= {"rewards": last, "dones": last.astype(np.uint8)}
    if trajectory.actions is not None:
        arrays["actions"] = trajectory.actions
    if trajectory.states is not None:
        arrays["states"] = trajectory.states[: trajectory.horizon]
        if len(trajectory.states) > trajectory.horizon:
            arrays["last_state"] = trajectory.states[-1]
    for name, rows in arrays.items():
        group.create_dataset(name, data=rows, compression="gzip")
    group.attrs["num_samples"] = trajectory.horizon
    for key in ("grid", "seed", "end_effector", "model_file"):
        if getattr(trajectory, key) is not None:
            group.attrs[key] = getattr(trajectory, key)
