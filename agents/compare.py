"""Compare observations and methods: ``python -m agents.compare --obs state pointcloud --seeds 3``.

Arguments after ``--`` are settings of every training: ``-- --potential.combine sum``.
"""

import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from agents import runs
from agents.config import Observation, TrainConfig, run_name
from agents.config.file import Settings
from agents.config.methods import DEFAULT, METHODS
from agents.config.train import check
from agents.launch.local import run_locally
from agents.launch.ray_cluster import run_on_ray
from agents.launch.slurm import submit
from agents.launch.training import missing
from agents.report.curves import draw_curves, draw_trainings
from agents.report.outcome import read_outcome
from agents.report.page import PICTURES, write_page
from agents.report.profiles import draw_profiles
from agents.report.table import results, results_table
from agents.runs.machine import remark
from agents.train import parse
from envs.command import one_line_errors
from envs.files import check_replaceable, write_text
from envs.ranges import COUNT, Range, check_ranges

FIGURES = "".join(f"\n{caption}:\n\n![{caption}]({name})\n" for name, caption in PICTURES.items())
DRAWN = {"curves.png": draw_curves, "profiles.png": draw_profiles, "training.png": draw_trainings}
REPORT = ("report.md", "report.html", "results.json", *DRAWN)
OWN = ("obs", "method", "grids", "seed", "steps", "preset", "out", "resume", "parallel")
"""Settings that the comparison sets itself."""


@dataclass(frozen=True)
class CompareConfig:
    """Train the runs that are missing or too short, reuse the others, and write learning curves and a results table.

    A run has solved the task when two consecutive evaluations reach 95 % (states) or 90 % (clouds); its time is wall
    time from the first environment step, evaluations included. --parallel 1 on an idle machine measures it. Arguments
    after " -- " are settings of every training, e.g. -- --learner.tau 0.01
    """

    obs: tuple[Observation, ...] = ("state", "pointcloud")
    """Observation types to compare."""
    method: tuple[str, ...] = (DEFAULT,)
    """Methods to compare: rows of the paper's table, named as for agents.train."""
    grids: tuple[Literal[1, 2, 3], ...] = (1,)
    """Numbers of active reset grids to compare; each grid has one demonstration."""
    encoder: tuple[str, ...] = ()
    """Registered encoders to compare; default: that of the observation."""
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
    """Output directory of the report: report.html, with videos of the runs, report.md, results.json and pictures."""
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


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.compare``."""
    arguments = sys.argv[1:] if arguments is None else arguments
    place = arguments.index("--") if "--" in arguments else len(arguments)
    config = tyro.cli(CompareConfig, args=arguments[:place], prog="python -m agents.compare")
    for name in ("obs", "method", "grids"):
        if not getattr(config, name):
            raise ValueError(f"--{name} is empty; name at least one")
    check_ranges(config)
    for name in REPORT:  # checked before the trainings, which take hours
        check_replaceable(config.out / name)
    if config.report_only:
        groups, trainings = found_runs(config.runs), {}
    else:
        planned = plan(config, arguments[place + 1 :])
        groups = {label: list(runs_of_one) for label, runs_of_one in planned.items()}
        trainings = {directory: one for runs_of_one in planned.values() for directory, one in runs_of_one.items()}
        if not launch(missing(trainings), config):
            return
    outcomes = {label: [read_outcome(directory) for directory in found] for label, found in groups.items()}
    busy = remark(*(run.others for found in outcomes.values() for run in found if run.others is not None))
    rows = results(outcomes, config.reference)
    remarks = f"{busy}\n" * bool(busy) + _other_settings(trainings)
    text = results_table(rows), f"\n{remarks}" * bool(remarks)
    try:
        config.out.mkdir(parents=True, exist_ok=True)
        write_text(config.out / "report.md", FIGURES.join(text))
        data = {label: [asdict(run) for run in of_one] for label, of_one in outcomes.items()}
        write_text(config.out / "results.json", json.dumps(data, indent=2) + "\n")
    finally:  # printed even if the report cannot be written
        print("".join(text), flush=True)
    for name, draw in DRAWN.items():
        draw(outcomes, config.out / name)
    write_page(config.out / "report.html", outcomes, rows, remarks)
    print(f"wrote {config.out}: {', '.join(sorted(REPORT))}")


def launch(unfinished: dict[Path, TrainConfig], config: CompareConfig) -> bool:
    """Train what is missing, and return whether all of it has ended, which submitted jobs have not."""
    if not unfinished:
        return True
    if config.launcher == "slurm":
        jobs = submit(unfinished, config.runs / "slurm", config.slurm)
        print(f"submitted {len(jobs)} jobs, {jobs[0]} to {jobs[-1]}; the same command reports when they have ended")
        return False
    if config.launcher == "ray":
        run_on_ray(unfinished, config.address)
    else:
        run_locally(unfinished, config.parallel)
    return True


def found_runs(directory: Path) -> dict[str, list[Path]]:
    """Return the finished runs in a directory by their names without the seed.

    Raises:
        FileNotFoundError: There is none.
    """
    found = {path: runs.read_config(path) for path in directory.glob("*-seed*") if (path / runs.RESULT).exists()}
    if not found:
        raise FileNotFoundError(f"--runs {directory}: holds no finished run")

    def place(path: Path) -> tuple[int, int, int, str, int]:
        """Order by the column of the table, then by its rows."""
        config = found[path]
        return -ord(config.obs[0]), config.grids, list(METHODS).index(config.method), path.name, config.seed

    groups: dict[str, list[Path]] = {}
    for path in sorted(found, key=place):
        groups.setdefault(path.name.rpartition("-seed")[0], []).append(path)
    return groups


def plan(config: CompareConfig, settings: list[str]) -> dict[str, dict[Path, TrainConfig]]:
    """Return the trainings of all combinations: label → run directory → configuration.

    Args:
        config: What is compared.
        settings: Arguments of agents.train for every training.

    Raises:
        ValueError: A setting is out of range, has no value to compare, or is set by the comparison itself.
    """
    axes = {"obs": config.obs, "grids": tuple(map(str, config.grids)), "method": config.method}
    usual = tuple(axes)
    planned: dict[str, dict[Path, TrainConfig]] = {}
    for name, *values in [("encoder", *config.encoder)] * bool(config.encoder) + list(config.vary):
        if not values or name in OWN:
            raise ValueError(
                f"--vary {name}: give a setting of agents.train, other than {', '.join(OWN)}, and its values"
            )
        axes[name] = tuple(values)
    for chosen in itertools.product(*axes.values()):
        cell = dict(zip(axes, chosen, strict=True))
        shown = {name: value for name, value in cell.items() if name in ("obs", "method") or len(axes[name]) > 1}
        label = " ".join(value if name in ("obs", "method") else f"{name}={value}" for name, value in shown.items())
        own = words_of({name: cell[name] for name in usual})
        plain = training(config, own, settings)
        changed = {
            name: value
            for name, value in cell.items()
            if name not in usual and training(config, own, [*words_of({name: value}), *settings]) != plain
        }
        first = training(config, own, [*words_of(changed), *settings])
        names = [f"{name}={','.join(value.split())}" for name, value in changed.items()]
        of_cell = [replace(first, seed=seed) for seed in range(config.seeds)]
        planned[label] = {config.runs / run_name(one, names): one for one in of_cell}
    return planned


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


def _other_settings(trainings: dict[Path, TrainConfig]) -> str:
    """List the existing runs whose settings differ from the requested ones, in Markdown."""
    lines = []
    for directory, training in trainings.items():
        wanted, has = (Settings(one).get_state() for one in (training, runs.read_config(directory)))
        other = [f"{name} {has.get(name)} ({wanted[name]})" for name in wanted if has.get(name) != wanted[name]]
        lines += [f"- {directory}: {', '.join(other)}\n"] * bool(other)
    return "".join(["\nTrained with other settings than those compared:\n\n", *lines]) if lines else ""


if __name__ == "__main__":
    main()
