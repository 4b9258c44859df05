"""The matrix of a comparison: what is compared, and the training of every combination."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import torch
import tyro

from agents import runs
from agents.config import METHODS, PRESETS, TrainConfig, check
from agents.config.file import unused
from agents.config.methods import DEFAULT
from agents.methods.encoder import check_encoder, needs_prior
from agents.tasks import get_task
from agents.tasks.named import register_named
from agents.train import parse
from envs.ranges import COUNT, Range
from perception.registry import available_encoders, find_encoder

OWN = ("task", "obs", "method", "grids", "seed", "steps", "preset", "out", "resume", "parallel")
"""Settings that the comparison sets itself."""


@dataclass(frozen=True)
class CompareConfig:
    """Train the runs that are missing or too short, reuse the others, and write learning curves and a results table.

    A run has solved the task when two consecutive evaluations reach 95 % (states) or 90 % (clouds, images); its time is
    wall time from the first environment step, evaluations included. --parallel 1 on an idle machine measures it.
    Arguments after " -- " are settings of every training, e.g. -- --learner.tau 0.01
    """

    task: str = "push-slot"
    """Registered task, or module:Name of your own."""
    obs: tuple[str, ...] | None = None
    """Observation types to compare; default: all of the task that a method takes."""
    method: tuple[str, ...] = (DEFAULT,)
    """Methods to compare: rows of the paper's table, named as for agents.train. Those that need the prior, for the
    potential or for features, leave out observations without goals (rgbd)."""
    grids: tuple[Literal[1, 2, 3], ...] = (1,)
    """Numbers of active reset grids to compare; each grid has one demonstration."""
    encoder: tuple[str, ...] = ()
    """Encoders to compare, registered or module:Name of your own, each with the observations that it takes; the report
    has a table of them. Default: that of the observation. Settings after -- do not name the run: a default encoder
    that is trained otherwise has its own run with --vary, e.g. --vary learner.encoder-training scratch."""
    vary: Annotated[tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction] = ()
    """Further setting of agents.train and its values to compare, e.g. --vary potential.combine product sum; may be
    repeated. A value of several words is quoted."""
    seeds: Annotated[int, Range(1, 1000)] = 3
    """Seeds 0 … N − 1 of each combination."""
    steps: Annotated[int | None, COUNT] = None
    """Environment steps of each run; default: the number in the preset."""
    preset: Literal["default", "paper"] = "default"
    """Preset of the training settings."""
    runs: Path = Path("runs")
    """Directory that holds the run directories; missing runs are written to it. The report lists runs with other
    settings."""
    out: Path = Path("comparison")
    """Output directory of the report: report.html, with videos of the runs, report.md, results.json, encoders.json
    and pictures."""
    reference: str | None = None
    """Method that the others are compared with, e.g. buffer; default: the first."""
    launcher: Literal["local", "ray", "slurm"] = "local"
    """Where the missing runs are trained: in processes on this machine, on a Ray cluster, or as a job array of Slurm,
    which is submitted and not waited for. Ray and Slurm need a file system that the machines share."""
    parallel: Annotated[int, Range(1, 1000)] = 2
    """Number of threads that local trainings use together. Each takes --threads of them, 1 by default; with --parallel
    1 there is one training at a time, which may use worker processes."""
    address: str | None = None
    """Address of the Ray cluster; default: that of RAY_ADDRESS or of this machine, else a cluster is started here."""
    slurm: tuple[str, ...] = ()
    """Parameters of submitit's executor, e.g. timeout_min=240 slurm_partition=cpu slurm_array_parallelism=20."""
    report_only: bool = False
    """Train nothing, and report all finished runs in --runs, grouped by their names."""
    imports: tuple[str, ...] = ()
    """Tasks and encoders of your own that reported runs use, each as module:Name."""


def plan(config: CompareConfig, settings: list[str]) -> dict[str, dict[Path, TrainConfig]]:
    """Return the trainings of all combinations: label → run directory → configuration.

    Args:
        config: What is compared.
        settings: Arguments of agents.train for every training.

    Raises:
        ValueError: A setting is out of range, has no value to compare, is given twice, or is set by the comparison
            itself; an observation, a method or an encoder goes together with none of the others; or two combinations
            have the same run directory.
    """
    axes = {
        "obs": config.obs or tuple(get_task(config.task).views),
        "grids": tuple(map(str, config.grids)),
        "method": config.method,
    }
    usual = tuple(axes)
    planned: dict[str, dict[Path, TrainConfig]] = {}
    for words in [("encoder", *config.encoder)] * bool(config.encoder) + list(config.vary):
        name, values = "".join(words[:1]), words[1:]
        if not values or name in OWN:
            raise ValueError(
                f"--vary {name}: give a setting of agents.train, other than {', '.join(OWN)}, and its values"
            )
        if name in axes or any(word.split("=")[0] == f"--{name}" for word in settings):
            raise ValueError(f"--vary {name}: the setting is given twice; give all of its values at once")
        axes[name] = tuple(values)
    register_named(axes.get("encoder", ()), "--encoder")
    for cell in _fitting(config, axes):
        own = words_of({"task": config.task} | {name: cell[name] for name in usual})
        plain = training(config, own, settings)
        idle = unused(plain)  # of a method without the part that a setting belongs to
        cell = {name: value for name, value in cell.items() if name.replace("-", "_") not in idle}
        shown = {name: value for name, value in cell.items() if name in ("obs", "method") or len(axes[name]) > 1}
        label = " ".join(value if name in ("obs", "method") else f"{name}={value}" for name, value in shown.items())
        default = {"encoder": get_task(config.task).view(cell["obs"]).encoder}
        changed = {
            name: value
            for name, value in cell.items()
            if name not in usual
            and value != default.get(name)
            and training(config, own, [*words_of({name: value}), *settings]) != plain
        }
        first = training(config, own, [*words_of(changed), *settings])
        if "encoder" in changed:
            check_encoder(first)
        names = [f"{name}={','.join(value.split())}" for name, value in changed.items() if name != "encoder"]
        of_cell = [replace(first, seed=seed) for seed in range(config.seeds)]
        if label in planned:  # of a method that does not use the setting
            continue
        of_label = {config.runs / runs.run_name(one, names): one for one in of_cell}
        taken = next((other for other, trainings in planned.items() if not trainings.keys().isdisjoint(of_label)), None)
        if taken is not None:
            raise ValueError(f"{label} and {taken} are the same runs, in {next(iter(of_label))}; compare one of them")
        planned[label] = of_label
    return planned


def _fitting(config: CompareConfig, axes: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """Yield the combinations whose observation, method and encoder go together.

    Raises:
        ValueError: A value that was given is in none of them; the message tells why.
    """
    cells = [dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values())]
    reasons = [_misfit(config.task, cell) for cell in cells]
    for name in ("obs", "method", "encoder"):
        for value in axes.get(name, ()) if name != "obs" or config.obs else ():
            why = [reason for cell, reason in zip(cells, reasons, strict=True) if cell[name] == value]
            if all(why):
                raise ValueError(f"--{name} {value}: goes together with nothing that is compared: {why[0]}")
    yield from (cell for cell, reason in zip(cells, reasons, strict=True) if not reason)


def _misfit(task: str, cell: Mapping[str, str]) -> str:
    """Return why observation, method and encoder of a combination do not go together; empty if they do."""
    view, encoder = get_task(task).view(cell["obs"]), cell.get("encoder")
    known = encoder is None or encoder in available_encoders()
    plain = TrainConfig(task=task, obs=cell["obs"], method=cell["method"], encoder=encoder)
    if view.goals is None and known and plain.method in METHODS and needs_prior(plain):
        return f"{plain.obs!r} has no goal to subtract, so that it has neither a prior nor Φ for {plain.method}"
    if encoder is not None and known:
        return _encoder_misfit(encoder, cast(Any, find_encoder(encoder)), view.space.shape)
    return ""


@lru_cache
def _encoder_misfit(name: str, encoder: Any, in_shape: tuple[int, ...]) -> str:
    """Return why a registered encoder does not take observations of a shape; empty if it maps one to its features."""
    refused = f"encoder {name!r} does not take observations of shape {in_shape}"
    try:
        made = encoder(in_shape=in_shape).eval()
        with torch.no_grad():
            found = tuple(made(torch.zeros(1, *in_shape)).shape)
    except (ValueError, RuntimeError, IndexError) as error:
        reason = str(error).strip().split("\n")[0]
        return reason if name in reason else f"{refused}: {reason}"
    expected = (1, made.out_features)
    return "" if found == expected else f"{refused}: it gives an array of shape {found}, not {expected}"


def words_of(settings: Mapping[str, str]) -> list[str]:
    """Return the command line arguments of settings."""
    return [word for name, value in settings.items() for word in (f"--{name}", *value.split())]


def training(config: CompareConfig, own: list[str], settings: list[str]) -> TrainConfig:
    """Return the configuration of a run: the preset, changed by the given settings of agents.train.

    Args:
        config: What is compared.
        own: Arguments for observation, method and grids.
        settings: Further arguments.

    Raises:
        ValueError: A setting is out of range, or is set by the comparison itself.
    """
    own = [*own, "--preset", config.preset, "--parallel", "auto" if config.parallel == 1 else "off"]
    own += [] if config.steps is None else ["--steps", str(config.steps)]
    usual, changed = parse(own), parse([*own, *settings])
    for name in OWN:
        if getattr(changed, name) != getattr(usual, name):
            raise ValueError(f"--{name} after -- is not taken: the comparison decides {', '.join(OWN)}")
    check(changed)
    return changed


def found_runs(directory: Path) -> dict[str, list[Path]]:
    """Return the finished runs in a directory by their names without the seed.

    Raises:
        FileNotFoundError: There is none.
    """
    found = {path: runs.read_config(path) for path in directory.glob("*-seed*") if (path / runs.RESULT).exists()}
    if not found:
        raise FileNotFoundError(f"--runs {directory}: holds no finished run")

    known = list(PRESETS["default"])

    def place(path: Path) -> tuple[int, str, int, int, str, int]:
        """Order by the column of the table, then by its rows."""
        config = found[path]
        return (
            known.index(config.obs) if config.obs in known else len(known),
            config.obs,
            config.grids,
            list(METHODS).index(config.method),
            path.name,
            config.seed,
        )

    groups: dict[str, list[Path]] = {}
    for path in sorted(found, key=place):
        groups.setdefault(path.name.rpartition("-seed")[0], []).append(path)
    return groups
