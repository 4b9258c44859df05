"""Write demonstrations in robomimic's HDF5 layout, described in `envs.demonstrations`."""

import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from envs.demonstrations.trajectory import Trajectory, check
from envs.files import check_replaceable


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
    check_writable(trajectories, str(path))
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
            for key in dict.fromkeys(key for trajectory in trajectories for key in trajectory.filter_keys):
                listed = [f"demo_{i}" for i, trajectory in enumerate(trajectories) if key in trajectory.filter_keys]
                file[f"mask/{key}"] = np.array(listed, dtype="S")
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)  # mkstemp creates files that other users cannot read
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def check_writable(trajectories: Sequence[Trajectory], where: str) -> None:
    """Check that there are demonstrations, that they are valid, and that HDF5 can hold them.

    Raises:
        ValueError: One of these does not hold.
    """
    if not trajectories:
        raise ValueError(f"{where}: no demonstration to write")
    for i, trajectory in enumerate(trajectories):
        check(trajectory, f"{where}: demo_{i}")
        unnamable = [name for name in trajectory.observations if not re.fullmatch(r"[^/.\0][^/\0]*", name)]
        if unnamable:
            raise ValueError(f"{where}: demo_{i}: obs: HDF5 takes no array named {unnamable[0]!r}; rename it")


def _write(group: h5py.Group, trajectory: Trajectory) -> None:
    horizon = trajectory.horizon
    arrays = {f"obs/{name}": rows[:-1] for name, rows in trajectory.observations.items()}
    arrays |= {f"next_obs/{name}": rows[1:] for name, rows in trajectory.observations.items()}
    last = np.arange(1, horizon + 1) == horizon
    arrays["rewards"] = last.astype(float) if trajectory.rewards is None else trajectory.rewards
    arrays["dones"] = last.astype(np.uint8) if trajectory.dones is None else trajectory.dones
    if trajectory.actions is not None:
        arrays["actions"] = trajectory.actions
    if trajectory.states is not None:
        arrays["states"] = trajectory.states[:horizon]
        if len(trajectory.states) > horizon:
            arrays["last_state"] = trajectory.states[-1]
    for name, rows in arrays.items():
        group.create_dataset(name, data=rows, compression="gzip")
    group.attrs["num_samples"] = horizon
    for key in ("grid", "seed", "end_effector", "model_file"):
        if getattr(trajectory, key) is not None:
            group.attrs[key] = getattr(trajectory, key)
