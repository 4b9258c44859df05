"""Command that shows and converts files of demonstrations: ``python -m envs.demonstrations info FILE``."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from envs.command import one_line_errors
from envs.demonstrations.dataset import Dataset
from envs.demonstrations.minari import dataset_path, save_minari
from envs.demonstrations.read import MINARI, read_dataset
from envs.demonstrations.save import save_demonstrations

SUFFIXES = (".hdf5", ".h5")


@dataclass(frozen=True)
class Info:
    """Show what a file of demonstrations holds."""

    file: Annotated[str, tyro.conf.Positional]
    """HDF5 file of robomimic, .npz or .npy file, directory of a Minari data set, or minari:ID."""


@dataclass(frozen=True)
class Convert:
    """Write the demonstrations of a file in another format.

    Observations, actions, rewards, dones, seeds and sets of demonstrations are written, and in HDF5 the states and the
    model of the simulator; what else the source holds is left out.
    """

    source: Annotated[str, tyro.conf.Positional]
    """HDF5 file of robomimic, .npz or .npy file, directory of a Minari data set, or minari:ID."""
    out: Annotated[str, tyro.conf.Positional]
    """HDF5 file to write, .hdf5 or .h5, or minari:ID for a Minari data set in MINARI_DATASETS_PATH."""
    keys: tuple[str, ...] = ()
    """Observations to write, NAME=SOURCE or NAME=SOURCE,SOURCE,… to concatenate arrays; default: all."""
    filter_key: str | None = None
    """Set of demonstrations to write, from mask/ in an HDF5 file; default: all."""
    env: str | None = None
    """Gymnasium environment of the demonstrations, NAME or MODULE:NAME to import a module that registers it; default:
    that of the source."""
    overwrite: bool = False
    """Replace an existing file or data set."""


def table(dataset: Dataset, title: str) -> Table:
    """Return what a file holds as a table of names and contents."""
    shown = Table("content", "value", title=title, title_justify="left")
    for name, text in _rows(dataset):
        shown.add_row(name, text)
    return shown


def convert(config: Convert) -> None:
    """Write the demonstrations of a file in another format.

    Raises:
        ImportError: The module of the environment cannot be imported.
        ValueError: The source is invalid, or the environment or the format of the target is unknown.
        FileExistsError: The target exists and is not to be overwritten.
    """
    dataset = read_dataset(config.source, _parse(config.keys) or None, config.filter_key)
    if config.env is not None:
        dataset = replace(dataset, env_args=_named(config.env, dataset.env_args))
    if config.out.startswith(MINARI):
        dataset_id = config.out.removeprefix(MINARI)
        save_minari(dataset_id, dataset.trajectories, dataset.env_args, config.overwrite)
        where = str(dataset_path(dataset_id))
        if any(trajectory.states is not None for trajectory in dataset.trajectories):
            print("Minari has no place for the states and the model of the simulator, they are left out")
    elif Path(config.out).suffix in SUFFIXES:
        save_demonstrations(config.out, dataset.trajectories, dataset.env_args, config.overwrite)
        where = config.out
    else:
        raise ValueError(f"{config.out}: unknown format; end the name in {' or '.join(SUFFIXES)}, or give {MINARI}ID")
    print(f"wrote {_count(dataset)} to {where}")


def _parse(keys: tuple[str, ...]) -> dict[str, list[str]]:
    parsed = {}
    for text in keys:
        name, given, names = text.partition("=")
        if not name or not given or not all(names.split(",")):
            raise ValueError(f"--keys: {text!r} is not NAME=SOURCE or NAME=SOURCE,SOURCE")
        parsed[name] = names.split(",")
    return parsed


def _named(env: str, recorded: dict[str, Any]) -> dict[str, Any]:
    """Return the description of an environment; its arguments are those that the file records for it."""
    module, _, name = env.rpartition(":")
    if module:
        importlib.import_module(module)
    if name not in gym.registry:
        raise ValueError(f"--env: {name!r} is unknown to Gymnasium; MODULE:NAME imports the module that registers it")
    return recorded if recorded.get("env_name") == name else {"env_name": name, "type": 2, "env_kwargs": {}}


def _count(dataset: Dataset) -> str:
    number, steps = len(dataset.trajectories), sum(trajectory.horizon for trajectory in dataset.trajectories)
    return f"{number} demonstration{'s'[: number > 1]} of {steps} step{'s'[: steps > 1]}"


def _rows(dataset: Dataset) -> Iterator[tuple[str, str]]:
    shown = dataset.trajectories
    lengths = [trajectory.horizon for trajectory in shown]
    yield "format", dataset.layout
    yield "environment", str(dataset.env_args.get("env_name") or "not recorded")
    yield "demonstrations", str(len(shown))
    yield "steps", f"{sum(lengths)}, {min(lengths)} to {max(lengths)} each"
    for name in shown[0].observations:
        yield f"observation {name}", _describe([trajectory.observations[name] for trajectory in shown])
    for key in ("actions", "rewards", "states"):
        arrays = [rows for trajectory in shown if (rows := getattr(trajectory, key)) is not None]
        without = f", missing in {len(shown) - len(arrays)}" if len(arrays) < len(shown) else ""
        yield key, (_describe(arrays) + without) if arrays else "not recorded"
    signals = {"a reward of 1": [t.rewards for t in shown], "done": [t.dones for t in shown]}
    ends = {key: [rows[-1] == 1 for rows in arrays if rows is not None] for key, arrays in signals.items()}
    said = [f"{sum(found)} of {len(found)} by {key}" for key, found in ends.items() if found]
    yield "success at the end", ", ".join(said) or "not recorded"
    keys = dict.fromkeys(key for trajectory in shown for key in trajectory.filter_keys)
    for key in keys:
        yield f"filter key {key}", f"{sum(key in trajectory.filter_keys for trajectory in shown)} demonstrations"


def _describe(arrays: list[np.ndarray]) -> str:
    """Return shape of a row, type and range of arrays."""
    shapes = dict.fromkeys(rows.shape[1:] for rows in arrays)
    low, high = min(rows.min() for rows in arrays), max(rows.max() for rows in arrays)
    return f"{' or '.join(map(str, shapes))} {arrays[0].dtype}, {low:.4g} to {high:.4g}"


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Run the command line; invalid input is reported in one line."""
    config = tyro.cli(Info | Convert, args=arguments, prog="python -m envs.demonstrations")  # type: ignore[arg-type]
    if isinstance(config, Convert):
        convert(config)
    else:
        console = Console(width=None if sys.stdout.isatty() else 120, markup=False, highlight=False)
        console.print(table(read_dataset(config.file), config.file))


if __name__ == "__main__":
    main()
