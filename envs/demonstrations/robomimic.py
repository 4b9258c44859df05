"""Read demonstrations in robomimic's HDF5 layout, described in `envs.demonstrations`."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from envs.demonstrations.dataset import Dataset, MissingError
from envs.demonstrations.hdf5 import Reader, has, members, opened, read
from envs.demonstrations.trajectory import Shape, Trajectory, check, check_length, check_rows

# From the names of the observations in a demonstration and the beginning of a message, those to read and the shapes of
# their rows; None is any shape.
Choose = Callable[[Sequence[str], str], Mapping[str, Shape | None]]

# Optional arrays besides observations and actions, with the shape of a row.
SIGNALS: dict[str, Shape] = {"rewards": (), "dones": ()}
SIMULATOR: dict[str, Shape] = {"states": (None,), "last_state": ()}
IMAGES = 2**26  # total size above which images are only read by name [bytes]


def read_robomimic(path: Path, names: Sequence[str] | None, filter_key: str | None) -> Dataset:
    """Read all demonstrations of a file of robomimic or robosuite, of any task.

    Args:
        path: HDF5 file.
        names: Names of the observations to read. None reads all but those without a number, and but images of more
            than 64 MiB together, which a line says.
        filter_key: Name of a `mask` of the file. None reads all demonstrations.

    Raises:
        ValueError: The file is invalid, or something that was asked for is not in it; the message is one line.
    """
    with opened(path) as file:
        reader = Reader()
        left_out = _left_out(file) if names is None else []

        def choose(found: Sequence[str], where: str) -> dict[str, None]:
            missing = [name for name in names or () if name not in found]
            if missing:
                raise MissingError(f"{where}/{missing[0]}: is missing; it has {', '.join(found) or 'no observation'}")
            chosen = [name for name in found if name not in left_out] if names is None else names
            if not chosen:
                raise ValueError(f"{where}: has no observation")
            return dict.fromkeys(chosen)

        trajectories = read_trajectories(file, reader, choose, filter_key)
        listed = _filter_keys(reader, file)
        trajectories = [replace(t, filter_keys=tuple(k for k in listed if t.name in listed[k])) for t in trajectories]
        return Dataset("HDF5 (robomimic)", trajectories, _env_args(reader, file))


def read_trajectories(
    file: h5py.File,
    reader: Reader,
    choose: Choose,
    filter_key: str | None,
    action: Shape = (None,),
    states: bool = True,
) -> list[Trajectory]:
    """Read and check demonstrations, in the order of their numbers.

    Args:
        file: Open file.
        reader: Reader of the file.
        choose: Choice of the observations.
        filter_key: Name of a `mask` of the file. None reads all demonstrations.
        action: Shape of an action.
        states: Whether to read the states and the model of the simulator too.

    Raises:
        ValueError: The file is invalid, or something that was asked for is not in it; the message is one line.
    """
    path = file.filename
    data = reader.group(file, "data", f"{path}: data") if has(file, "data") else {}
    names = [name for name in members(data) if re.fullmatch(r"demo_\d{1,9}", name)]
    if not names:
        raise ValueError(f"{path}: holds no demonstration (data/demo_0, …)")
    if filter_key is not None:
        names = _filtered(reader, file, names, filter_key)
    names.sort(key=lambda name: int(name[5:]))
    groups = {name: reader.group(data, name, f"{path}: {name}") for name in names}
    # All arrays are declared before the first is read, since the limit applies to their total size.
    signals = {"actions": action} | SIGNALS | (SIMULATOR if states else {})
    declared = {name: _declared(reader, group, f"{path}: {name}", choose, signals) for name, group in groups.items()}
    return [_read(reader, groups[name], declared[name], name, f"{path}: {name}") for name in names]


def _masks(reader: Reader, file: h5py.File) -> Mapping[str, Any]:
    return reader.group(file, "mask", f"{file.filename}: mask") if has(file, "mask") else {}


def _filtered(reader: Reader, file: h5py.File, names: list[str], filter_key: str) -> list[str]:
    """Return the demonstrations that a filter key lists."""
    masks = _masks(reader, file)
    known = sorted(members(masks))
    if filter_key not in known:
        raise ValueError(f"{file.filename}: has no filter key {filter_key!r}; it has {', '.join(known) or 'none'}")
    where = f"{file.filename}: mask/{filter_key}"
    listed = set(reader.names(masks, filter_key, len(names), where))  # type: ignore[arg-type]
    missing = sorted(listed - set(names))
    if missing or not listed:
        reason = f"lists {missing[0]!r}, which is not in the file" if missing else "lists no demonstration"
        raise ValueError(f"{where}: {reason}")
    return list(listed)


def _filter_keys(reader: Reader, file: h5py.File) -> dict[str, list[str]]:
    """Return the names of demonstrations by filter key."""
    masks, most = _masks(reader, file), len(file["data"])
    return {key: reader.names(masks, key, most, f"{file.filename}: mask/{key}") for key in members(masks)}  # type: ignore[arg-type]


def _env_args(reader: Reader, file: h5py.File) -> dict[str, Any]:
    where = f"{file.filename}: env_args"
    text = reader.text(file["data"], "env_args", where)
    try:
        env_args = json.loads(text or "{}")
    except ValueError:
        env_args = None
    if not isinstance(env_args, dict):
        raise ValueError(f"{where}: is no JSON object")
    return env_args


def _left_out(file: h5py.File) -> list[str]:
    """Return the names of observations that are not read unasked, and print a line about the images among them.

    These are observations without a number, such as the joints of a gripper that has none, and images that take more
    than `IMAGES` together.
    """
    empty, images = set(), dict[str, int]()

    def add(name: str, member: Any) -> None:
        text = name if isinstance(name, str) else ""  # names that are no text are skipped
        if isinstance(member, h5py.Dataset) and re.fullmatch(r"data/demo_\d+/obs/[^/]+", text):
            observation, row = name.rpartition("/")[2], math.prod(member.shape[1:])
            if row == 0:
                empty.add(observation)
            elif member.ndim == 4:
                images[observation] = images.get(observation, 0) + len(member) * row * member.dtype.itemsize

    file.visititems(add)  # visits no links
    if sum(images.values()) <= IMAGES:
        return list(empty)
    print(f"{file.filename}: left out the images {', '.join(images)}; name them to read them")
    return [*empty, *images]


def _declared(
    reader: Reader, group: h5py.Group, where: str, choose: Choose, signals: Mapping[str, Shape]
) -> dict[str, h5py.Dataset]:
    """Declare the arrays of a demonstration; return them by their names in its group."""
    if has(group, "states") and not has(group, "obs"):
        raise ValueError(
            f"{where}: has states of the simulator, but no observations; robomimic's convert_robosuite.py and "
            "dataset_states_to_obs.py play the states back and write them"
        )
    observations = reader.group(group, "obs", f"{where}: obs")
    chosen = choose(members(observations), f"{where}: obs")
    arrays = {f"obs/{n}": reader.declared(observations, n, shape, f"{where}: obs/{n}") for n, shape in chosen.items()}
    if has(group, "next_obs"):
        following = reader.group(group, "next_obs", f"{where}: next_obs")
        for name in chosen:
            shape = arrays[f"obs/{name}"].shape[1:]
            arrays[f"next_obs/{name}"] = reader.declared(following, name, shape, f"{where}: next_obs/{name}", last=True)
    for key, shape in signals.items():
        if has(group, key):
            arrays[key] = reader.declared(group, key, shape, f"{where}: {key}")
    return arrays


def _read(reader: Reader, group: h5py.Group, declared: dict[str, h5py.Dataset], name: str, where: str) -> Trajectory:
    """Read and check a demonstration.

    Its last observation is the last of `next_obs`. Without `next_obs`, and with as many steps as observations, what
    follows the last action is unknown, so that the last step is left out.
    """
    observations = {key[4:]: _with_next(declared, key[4:], where) for key in declared if key.startswith("obs/")}
    arrays = {key: read(found) for key, found in declared.items() if "/" not in key}
    horizon = Trajectory(observations).horizon
    steps = next((len(arrays[key]) for key in ("actions", "rewards", "dones", "states") if key in arrays), horizon)
    unknown = steps == horizon + 1 and not has(group, "next_obs")
    signals: dict[str, Any] = {
        key: rows[:horizon] if unknown else rows for key, rows in arrays.items() if key not in SIMULATOR
    }
    trajectory = Trajectory(
        observations,
        grid=reader.count(group, "grid", f"{where}: grid"),
        seed=reader.count(group, "seed", f"{where}: seed"),
        end_effector=reader.numbers(group, "end_effector", 2, f"{where}: end_effector"),
        name=name,
        **signals,
    )
    check(trajectory, where)
    if "states" in arrays:
        model = reader.text(group, "model_file", f"{where}: model_file")
        trajectory = replace(trajectory, states=_with_last(arrays, horizon + unknown, where), model_file=model)
    samples = reader.count(group, "num_samples", f"{where}: num_samples")
    if samples is not None and samples != horizon + unknown:
        raise ValueError(f"{where}: num_samples: is {samples}, but there are {horizon + unknown} steps")
    return trajectory


def _with_next(declared: dict[str, h5py.Dataset], name: str, where: str) -> np.ndarray:
    """Return the observations, followed by the last of the next observations."""
    rows, following = declared[f"obs/{name}"], declared.get(f"next_obs/{name}")
    if following is None:
        return read(rows)
    if len(following) != len(rows):
        raise ValueError(f"{where}: next_obs/{name}: has {len(following)} rows, but obs/{name} has {len(rows)}")
    return np.concatenate([read(rows), read(following, slice(-1, None))])


def _with_last(arrays: dict[str, np.ndarray], steps: int, where: str) -> np.ndarray:
    """Return the states, followed by the last state if it was recorded."""
    states, last = arrays["states"], arrays.get("last_state")
    check_rows(states, (None,), f"{where}: states")
    check_length(states, steps, f"{where}: states")
    if last is None:
        return states
    if last.shape != states.shape[1:]:
        raise ValueError(f"{where}: last_state: has {len(last)} numbers, but a row of states has {states.shape[1]}")
    check_rows(last[None], (None,), f"{where}: last_state")
    return np.concatenate([states, last[None]])
