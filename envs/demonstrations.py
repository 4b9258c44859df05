"""Demonstrations: one type, and files in robomimic's HDF5 layout that are checked when they are read.

    data                      attributes: env_args (JSON), total [steps]
    └── demo_0                attributes: num_samples = H, grid, seed, end_effector (2,) [m]
        ├── obs/state         (H + 1, 8)      [s_PE, v_PE, s_PG, v_PG] [m, m/s]
        ├── obs/pointcloud    (H + 1, n, 4)   [p_i − E, p_i − G] [m]
        ├── obs/puck_pose     (H + 1, 7)      position [m] and quaternion (w, x, y, z), world frame
        ├── actions           (H, 2)          in [−1, 1]; missing where the demonstration is action-free
        └── rewards, dones    (H,)            1 at the last step, 0 before

Unlike robomimic's, observations include the last one, which lies in the goal set.
"""

import json
import os
import re
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from envs.hdf5 import Reader, has

# What one row of each observation looks like; None is any number of points.
SHAPES: dict[str, tuple[int | None, ...]] = {"state": (8,), "pointcloud": (None, 4), "puck_pose": (7,)}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One demonstration that ends in the goal set.

    Attributes:
        observations: By name, shape (H + 1, …) each, see the module.
        actions: Shape (H, 2) in [−1, 1]; None if only the puck was watched.
        grid: Index of the reset grid from which it starts.
        seed: Seed with which the environment was reset.
        end_effector: Where the tip of the pusher starts, world frame, shape (2,) [m]. The state says the same in single
            precision, whose error an open-loop replay amplifies.
    """

    observations: dict[str, np.ndarray]
    actions: np.ndarray | None = None
    grid: int | None = None
    seed: int | None = None
    end_effector: np.ndarray | None = None

    @property
    def horizon(self) -> int:
        """H [steps]."""
        return len(next(iter(self.observations.values()))) - 1

    @property
    def start(self) -> dict[str, np.ndarray]:
        """Options with which `PushEnv.reset` starts where this demonstration does, everything at rest.

        Raises:
            ValueError: State or pose of the puck were not recorded.
        """
        missing = {"state", "puck_pose"} - set(self.observations)
        if missing:
            raise ValueError(f"no start without {' and '.join(sorted(missing))}; record with --obs state")
        state, puck = self.observations["state"][0].astype(float), self.observations["puck_pose"][0, :2]
        tip = puck - state[:2] if self.end_effector is None else self.end_effector
        return {"puck": puck, "end_effector": tip, "goal": np.append(puck - state[4:6], -state[6:8])}


def load_demonstrations(path: str | Path, obs: str | None = None) -> list[Trajectory]:
    """Read and check a file of demonstrations.

    Several processes may read one file, which may be read-only.

    Args:
        path: HDF5 file.
        obs: Observation that every demonstration must have; any if not given.

    Returns:
        Demonstrations in the order of their numbers.

    Raises:
        ValueError: There is no such file, it is damaged, or a demonstration breaks the layout; one line that names
            file, demonstration and key.
    """
    path = Path(path)
    if obs is not None and obs not in SHAPES:
        raise ValueError(f"unknown observation {obs!r}; known observations: {', '.join(SHAPES)}")
    try:
        there = path.is_file()
    except OSError as error:  # a name that cannot be
        raise ValueError(f"{path}: {error.strerror}") from error
    if not there:
        raise ValueError(f"{path}: no such file; python -m envs.record writes demonstrations")
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path}: no permission to read it")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    if not h5py.is_hdf5(path):
        raise ValueError(f"{path}: not an HDF5 file")
    try:
        # Some read-only file systems have no locks.
        with h5py.File(path, "r", locking="best-effort") as file:
            reader = Reader()
            data = reader.group(file, "data", f"{path}: data") if has(file, "data") else {}
            names = [name for name in data if re.fullmatch(r"demo_\d{1,9}", name)]
            if not names:
                raise ValueError(f"{path}: holds no demonstration (data/demo_0, …)")
            return [
                _read(reader, data, name, f"{path}: {name}", obs)
                for name in sorted(names, key=lambda name: int(name[5:]))
            ]
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(f"{path}: truncated or damaged ({str(error).splitlines()[0]})") from error


def save_demonstrations(
    path: str | Path, trajectories: Sequence[Trajectory], env_args: dict[str, Any], overwrite: bool = False
) -> None:
    """Check demonstrations and write them to a file, whole or not at all.

    Args:
        path: HDF5 file; its folder is made if missing.
        trajectories: What to write.
        env_args: How the environment was built, stored as JSON.
        overwrite: Replace an existing file.

    Raises:
        ValueError: There is nothing to write, or a demonstration breaks the layout.
        FileExistsError: The file exists and `overwrite` is not set.
    """
    path = Path(path)
    if not trajectories:
        raise ValueError(f"{path}: no demonstration to write")
    for i, trajectory in enumerate(trajectories):
        _check(trajectory, f"{path}: demo_{i}")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path}: exists already; choose another name or --overwrite")
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
        Path(temporary).chmod(0o666 & ~mask)  # mkstemp makes files that others cannot read
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def warn_if_longer(trajectories: Sequence[Trajectory], horizon: int) -> None:
    """Warn of demonstrations that the environment would have truncated; each keeps its own H.

    Args:
        trajectories: Demonstrations.
        horizon: Horizon of the environment [steps].
    """
    longer = [f"demo_{i} ({t.horizon} steps)" for i, t in enumerate(trajectories) if t.horizon > horizon]
    if longer:
        warnings.warn(f"longer than the horizon of {horizon} steps: {', '.join(longer)}", stacklevel=2)


def _read(reader: Reader, data: h5py.Group, demo: str, where: str, obs: str | None) -> Trajectory:
    group = reader.group(data, demo, where)
    observations = reader.group(group, "obs", f"{where}: obs")
    names = [name for name in SHAPES if has(observations, name)]
    if obs is None and not {"state", "pointcloud"} & set(names):
        raise ValueError(f"{where}: obs: has neither state nor pointcloud")
    if obs is not None and obs not in names:
        raise ValueError(f"{where}: obs/{obs}: is missing; it has {', '.join(names) or 'no observation'}")
    rows = {name: reader.array(observations, name, SHAPES[name], f"{where}: obs/{name}") for name in names}
    others = {
        key: reader.array(group, key, shape, f"{where}: {key}")
        for key, shape in (("actions", (2,)), ("rewards", ()), ("dones", ()))
        if has(group, key)
    }
    trajectory = Trajectory(
        rows,
        actions=others.pop("actions", None),
        grid=reader.count(group, "grid", f"{where}: grid"),
        seed=reader.count(group, "seed", f"{where}: seed"),
        end_effector=reader.numbers(group, "end_effector", 2, f"{where}: end_effector"),
    )
    _check(trajectory, where)
    for key, values in others.items():
        _check_rows(values, (), f"{where}: {key}")
        _check_length(values, trajectory.horizon, f"{where}: {key}")
    samples = reader.count(group, "num_samples", f"{where}: num_samples")
    if samples is not None and samples != trajectory.horizon:
        raise ValueError(f"{where}: num_samples: is {samples}, but there are {trajectory.horizon} steps")
    return trajectory


def _write(group: h5py.Group, trajectory: Trajectory) -> None:
    last = np.zeros(trajectory.horizon)
    last[-1] = 1.0
    arrays = {f"obs/{name}": rows for name, rows in trajectory.observations.items()}
    arrays |= {"rewards": last, "dones": last.astype(np.uint8)}
    if trajectory.actions is not None:
        arrays["actions"] = trajectory.actions
    for name, rows in arrays.items():
        group.create_dataset(name, data=rows, compression="gzip")
    group.attrs["num_samples"] = trajectory.horizon
    for key in ("grid", "seed", "end_effector"):
        if getattr(trajectory, key) is not None:
            group.attrs[key] = getattr(trajectory, key)


def _check(trajectory: Trajectory, where: str) -> None:
    for name, rows in trajectory.observations.items():
        if name not in SHAPES:
            raise ValueError(f"{where}: obs/{name}: unknown observation; known: {', '.join(SHAPES)}")
        _check_rows(rows, SHAPES[name], f"{where}: obs/{name}")
    if not trajectory.observations or trajectory.horizon < 1:
        raise ValueError(f"{where}: obs: has less than 2 rows, so no step")
    for name, rows in trajectory.observations.items():
        _check_length(rows, trajectory.horizon + 1, f"{where}: obs/{name}")
    tip = trajectory.end_effector
    if tip is not None and (np.shape(tip) != (2,) or not np.isfinite(tip).all()):
        raise ValueError(f"{where}: end_effector: is {np.asarray(tip).tolist()}, not 2 finite numbers")
    if trajectory.actions is not None:
        _check_rows(trajectory.actions, (2,), f"{where}: actions")
        _check_length(trajectory.actions, trajectory.horizon, f"{where}: actions")
        outside = np.flatnonzero((np.abs(trajectory.actions) > 1.0 + 1e-6).any(axis=1))
        if len(outside):
            row = trajectory.actions[outside[0]].tolist()
            raise ValueError(f"{where}: actions: row {outside[0]} is {row}, outside [-1, 1]")


def _check_rows(rows: np.ndarray, shape: tuple[int | None, ...], where: str) -> None:
    fits = rows.ndim == len(shape) + 1 and all(
        size > 0 if wanted is None else size == wanted for size, wanted in zip(rows.shape[1:], shape, strict=False)
    )
    if not fits:
        wanted = ", ".join("n" if size is None else str(size) for size in ("steps", *shape))
        raise ValueError(f"{where}: shape is {rows.shape}, not ({wanted})")
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"{where}: holds {rows.dtype}, not numbers")
    finite = np.abs(rows.astype(float)) <= np.finfo(np.float32).max  # the precision of observations
    broken = np.flatnonzero(~finite.reshape(len(rows), -1).all(axis=1))
    if len(broken):
        raise ValueError(f"{where}: row {broken[0]} is not finite")


def _check_length(rows: np.ndarray, length: int, where: str) -> None:
    if len(rows) != length:
        raise ValueError(f"{where}: has {len(rows)} rows, not {length}; observations have one more than steps")
