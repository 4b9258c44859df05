"""Read and write Minari data sets.

They are read from their HDF5 files without Minari; writing needs it. An observation space of type Dict gives one
observation for each key (those of nested Dicts are joined by dots), any other space the observation "observation".
The success in `infos` ("success" or "is_success") is taken for the dones, or else the terminations are.
"""

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import h5py
import numpy as np

from envs.demonstrations.dataset import OBSERVATION, Dataset, MissingError
from envs.demonstrations.hdf5 import Reader, damaged, has, members, opened, read
from envs.demonstrations.save import check_writable
from envs.demonstrations.trajectory import Shape, Trajectory, check, check_length
from envs.files import read_regular
from envs.push.make import gymnasium_arguments

SUCCESS = ("success", "is_success")
GRID = "options/grid"  # attribute of an episode: the option of `PushEnv.reset`
DATASET_ID = re.compile(r"[-\w]+(/[-\w]+)*-v\d+")


def dataset_path(dataset_id: str) -> Path:
    """Return the directory of a data set, in ``MINARI_DATASETS_PATH`` or, by default, ``~/.minari/datasets``."""
    root = os.environ.get("MINARI_DATASETS_PATH")
    return (Path(root) if root else Path.home() / ".minari" / "datasets") / dataset_id


def read_minari(path: Path, names: Sequence[str] | None, filter_key: str | None) -> Dataset:
    """Read the demonstrations of a Minari data set.

    Args:
        path: Directory of the data set.
        names: Names of the observations to read. None reads all but images, which a line says.
        filter_key: Must be None, since Minari has no filter keys.

    Raises:
        ValueError: The data set is invalid, or something that was asked for is not in it; the message is one line.
    """
    if filter_key is not None:
        raise ValueError(f"{path}: has no filter key {filter_key!r}; Minari data sets have none")
    data = path / "data" if (path / "data").is_dir() else path
    metadata = _metadata(data / "metadata.json")
    images = _images(metadata.get("observation_space"))
    if names is None and images:
        print(f"{path}: left out the images {', '.join(images)}, which are stored as JPEG")
    file_path = data / "main_data.hdf5"
    with opened(file_path) as file:
        reader = Reader()
        episodes = sorted(
            (n for n in members(file) if re.fullmatch(r"episode_\d{1,9}", n)), key=lambda name: int(name[8:])
        )
        if not episodes:
            raise ValueError(f"{file_path}: holds no episode")
        groups = {name: reader.group(file, name, f"{file_path}: {name}") for name in episodes}
        # All arrays are declared before the first is read, since the limit applies to their total size.
        declared = {
            name: _declared(reader, group, names, images, f"{file_path}: {name}") for name, group in groups.items()
        }
        trajectories = [_read(reader, groups[n], declared[n], n, f"{file_path}: {n}") for n in episodes]
    return Dataset("Minari", trajectories, _env_args(metadata))


def save_minari(
    dataset_id: str, trajectories: Sequence[Trajectory], env_args: Mapping[str, Any], overwrite: bool = False
) -> None:
    """Validate demonstrations and write them as a Minari data set.

    One observation gives an observation space of type Box, several give a Dict. Where `env_args` describe an
    environment that Gymnasium can make, `MinariDataset.recover_environment` makes it. Minari has no place for the
    states and the model of the simulator.

    Args:
        dataset_id: Identifier, (namespace/)name-vN; the data set is written to `dataset_path`.
        trajectories: Demonstrations to write.
        env_args: Description of the environment as in robomimic.
        overwrite: Whether to replace an existing data set.

    Raises:
        ImportError: Minari is not installed.
        ValueError: The identifier is malformed, or a demonstration is invalid, lacks actions or has images.
        FileExistsError: The data set exists and `overwrite` is not set.
    """
    try:
        import minari
        from minari.data_collector.episode_buffer import EpisodeBuffer
    except ImportError:
        raise ImportError("Minari data sets need an extra: pip install 'pushcloud[datasets]'") from None
    where = f"minari:{dataset_id}"
    if not DATASET_ID.fullmatch(dataset_id):
        raise ValueError(f"{where}: is no identifier of a data set, such as push/slot-v0")
    check_writable(trajectories, where)
    for i, trajectory in enumerate(trajectories):
        if trajectory.actions is None:
            raise ValueError(f"{where}: demo_{i}: has no actions, which Minari needs; write HDF5 instead")
        images = [name for name, rows in trajectory.observations.items() if rows.dtype == np.uint8]
        if images:
            raise ValueError(f"{where}: demo_{i}: obs/{images[0]}: Minari compresses images with losses; leave it out")
    path = dataset_path(dataset_id)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{where}: {path} exists already; choose another name or --overwrite")
    with warnings.catch_warnings(), replacing(path):
        warnings.simplefilter("ignore")  # Minari recommends to name author, algorithm and code
        env = _make(env_args, trajectories[0])
        minari.create_dataset_from_buffers(
            dataset_id,
            [EpisodeBuffer(**_episode(trajectory)) for trajectory in trajectories],
            env=env,
            eval_env=env,
            observation_space=_observation_space(trajectories[0]),
            action_space=_action_space(trajectories[0], env),
        )
        if env is not None:
            env.close()


@contextmanager
def replacing(directory: Path) -> Iterator[None]:
    """Move a directory aside while a new one is written; without success the old one is put back."""
    aside = directory.with_name(f".{directory.name}.{os.getpid()}.partial")
    if directory.exists():
        directory.replace(aside)
    try:
        yield
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        if aside.exists():
            aside.replace(directory)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _make(env_args: Mapping[str, Any], trajectory: Trajectory) -> gym.Env | None:
    """Make the environment that robomimic's `env_args` describe; None, and a line, if Gymnasium cannot make it."""
    name, kwargs = env_args.get("env_name"), env_args.get("env_kwargs") or {}
    arguments = gymnasium_arguments(env_args, "+".join(trajectory.observations))
    if arguments is None and name in gym.registry:
        arguments = {"id": name, **kwargs}
    reason = "unknown to Gymnasium; --env MODULE:NAME, or an import, registers it"
    if arguments is not None:
        try:
            return gym.make(**arguments)
        except (gym.error.Error, ImportError, OSError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
    unknown = "none is recorded; --env NAME or MODULE:NAME gives one" if name is None else f"{name} ({reason})"
    print(f"the data set names no environment: {unknown}")
    return None


def _observation_space(trajectory: Trajectory) -> gym.Space:
    spaces: dict[str, gym.Space] = {name: _box(rows) for name, rows in trajectory.observations.items()}
    return gym.spaces.Dict(spaces) if len(spaces) > 1 else next(iter(spaces.values()))


def _action_space(trajectory: Trajectory, env: gym.Env | None) -> gym.Space:
    assert trajectory.actions is not None
    known = None if env is None else env.action_space
    if isinstance(known, gym.spaces.Box) and known.shape == trajectory.actions.shape[1:]:
        return _box(trajectory.actions, known.low, known.high)
    return _box(trajectory.actions)


def _box(rows: np.ndarray, low: Any = -np.inf, high: Any = np.inf) -> gym.spaces.Box:
    """Return the space of the rows of an array."""
    return gym.spaces.Box(low, high, rows.shape[1:], rows.dtype.type)


def _episode(trajectory: Trajectory) -> dict[str, Any]:
    """Return the arguments of Minari's EpisodeBuffer."""
    last = np.arange(1, trajectory.horizon + 1) == trajectory.horizon
    dones = last if trajectory.dones is None else trajectory.dones
    rows = trajectory.observations
    return {
        "observations": rows if len(rows) > 1 else next(iter(rows.values())),
        "actions": trajectory.actions,
        "rewards": last.astype(float) if trajectory.rewards is None else trajectory.rewards,
        "terminations": last & (dones == 1),
        "truncations": last & (dones != 1),
        "infos": {SUCCESS[0]: np.append(False, dones == 1)},
        "seed": trajectory.seed,
        "options": None if trajectory.grid is None else {"grid": trajectory.grid},
    }


def _metadata(path: Path) -> dict[str, Any]:
    """Read the description of a data set, which holds spaces and environments as JSON within JSON."""
    try:
        metadata = json.loads(read_regular(path))
        inner = ("observation_space", "env_spec")
        metadata |= {key: json.loads(metadata[key]) for key in inner if metadata.get(key) is not None}
    except FileNotFoundError as error:
        raise ValueError(f"{path}: is missing; not a Minari data set") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, error) from error
    if metadata.get("data_format", "hdf5") != "hdf5":
        raise ValueError(f"{path}: data_format: is {metadata['data_format']!r}; only 'hdf5' is read")
    return metadata


def _env_args(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the environment as in robomimic, whose type 2 is Gymnasium."""
    spec = metadata.get("env_spec")
    if not isinstance(spec, dict):
        return {}
    limit = {} if spec.get("max_episode_steps") is None else {"max_episode_steps": spec["max_episode_steps"]}
    return {"env_name": spec.get("id"), "type": 2, "env_kwargs": (spec.get("kwargs") or {}) | limit}


def _images(space: Any, name: str = "") -> list[str]:
    """Return the names of the images in an observation space, which Minari stores as JPEG."""
    if not isinstance(space, dict):
        return []
    if space.get("type") == "Dict":
        inner = space.get("subspaces", {}).items()
        return [image for key, part in inner for image in _images(part, f"{name}.{key}" if name else key)]
    return [name or OBSERVATION] * (space.get("dtype") == "uint8" and len(space.get("shape", ())) > 1)


def _leaves(
    reader: Reader, parent: h5py.Group, key: str, name: str, where: str, seen: set[int]
) -> Iterator[tuple[str, h5py.Group, str]]:
    """Yield name, group and key of every array of observations.

    Groups may hold each other, so the addresses of those that were seen are kept.
    """
    member = reader.member(parent, key, where, (h5py.Group, h5py.Dataset), "an array or a group")
    if isinstance(member, h5py.Dataset):
        yield name or OBSERVATION, parent, key
        return
    address = h5py.h5o.get_info(member.id).addr
    if address in seen:
        raise ValueError(f"{where}: is another name of a group that was read already")
    seen.add(address)
    for inner in members(member):
        yield from _leaves(reader, member, inner, f"{name}.{inner}" if name else inner, f"{where}/{inner}", seen)


def _declared(
    reader: Reader, group: h5py.Group, names: Sequence[str] | None, images: Sequence[str], where: str
) -> dict[str, h5py.Dataset]:
    """Declare the arrays of an episode; return observations by obs/ and their name."""
    found = {
        name: (parent, key) for name, parent, key in _leaves(reader, group, "observations", "", f"{where}: obs", set())
    }
    chosen = [name for name in found if name not in images] if names is None else names
    if not chosen:
        raise ValueError(f"{where}: obs: has no observation")
    arrays = {}
    for name in chosen:
        if name not in found:
            raise MissingError(f"{where}: obs/{name}: is missing; it has {', '.join(found) or 'no observation'}")
        if name in images:
            raise ValueError(f"{where}: obs/{name}: is stored as JPEG, which is not read")
        arrays[f"obs/{name}"] = reader.declared(*found[name], None, f"{where}: obs/{name}")
    signals: dict[str, Shape] = {"actions": (None,), "rewards": (), "terminations": ()}
    arrays |= {k: reader.declared(group, k, shape, f"{where}: {k}") for k, shape in signals.items() if has(group, k)}
    infos = reader.group(group, "infos", f"{where}: infos") if has(group, "infos") else {}
    for key in SUCCESS:
        if key in infos:
            arrays["success"] = reader.declared(infos, key, (), f"{where}: infos/{key}")  # type: ignore[arg-type]
    return arrays


def _read(reader: Reader, group: h5py.Group, declared: dict[str, h5py.Dataset], name: str, where: str) -> Trajectory:
    observations = {key[4:]: read(found) for key, found in declared.items() if key.startswith("obs/")}
    arrays = {key: read(found) for key, found in declared.items() if "/" not in key}
    dones = arrays.get("success", arrays.get("terminations"))
    if "success" in arrays:
        check_length(arrays["success"], len(next(iter(observations.values()))), f"{where}: infos/success")
        dones = arrays["success"][1:]  # the first belongs to the reset
    trajectory = Trajectory(
        observations,
        arrays.get("actions"),
        grid=reader.count(group, GRID, f"{where}: {GRID}"),
        seed=reader.count(group, "seed", f"{where}: seed"),
        name=name,
        rewards=arrays.get("rewards"),
        dones=dones,
    )
    check(trajectory, where)
    return trajectory
