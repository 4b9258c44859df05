"""Compare observations and methods: ``python -m agents.compare --obs state pointcloud --seeds 3``.

Arguments after ``--`` are settings of every training: ``-- --potential.combine sum``.
"""

import itertools
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from agents import runs
from agents.config import Observation, TrainConfig, run_name
from agents.config.file import Settings
from agents.config.methods import DEFAULT
from agents.config.train import check
from agents.launch.local import run_missing
from agents.report.curves import draw_curves
from agents.report.outcome import read_outcome
from agents.report.table import results_table
from agents.runs.machine import remark
from agents.train import parse
from envs.command import one_line_errors
from envs.files import check_replaceable, write_text
from envs.ranges import COUNT, Range, check_ranges

PICTURE = """
Success rate over environment steps and minutes, median and quartiles over the seeds:

![Success rate over environment steps and minutes](curves.png)
"""
REPORT = ("report.md", "results.json", "curves.png")
OWN = ("obs", "method", "grids", "seed", "steps", "preset", "out", "resume", "parallel")
"""Settings that the comparison sets itself."""


@dataclass(frozen=True)
class CompareConfig:
    """Train the runs that are missing or too short, reuse the others, and write learning curves and a results table.

    A run has solved the task when two consecutive evaluations reach 95 % (states) or 90 % (clouds); its time is wall
    time from the first environment step, evaluations included. --parallel 1 on an idle machine measures it. Arguments
    after " -- " are settings of every training, e.g. -- --potential.combine sum
    """

    obs: tuple[Observation, ...] = ("state", "pointcloud")
    """Observation types to compare."""
    method: tuple[str, ...] = (DEFAULT,)
    """Methods to compare: rows of the paper's table, named as for agents.train."""
    seeds: Annotated[int, Range(1, 1000)] = 3
    """Seeds 0 … N − 1 of each combination of observation and method."""
    grids: Literal[1, 2, 3] = 1
    """Number of active reset grids; each has one demonstration."""
    steps: Annotated[int | None, COUNT] = None
    """Environment steps of each run; default: the number in the preset."""
    preset: Literal["default", "paper"] = "default"
    """Preset of the training settings."""
    runs: Path = Path("runs")
    """Directory that holds the run directories; missing runs are written to it. The report lists runs with other
    settings."""
    out: Path = Path("comparison")
    """Output directory of report.md, results.json and curves.png."""
    parallel: Annotated[int, Range(1, 1000)] = 2
    """Number of trainings that run in parallel, with one thread each; a single one may use worker processes."""


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.compare``."""
    arguments = sys.argv[1:] if arguments is None else arguments
    place = arguments.index("--") if "--" in arguments else len(arguments)
    config = tyro.cli(CompareConfig, args=arguments[:place], prog="python -m agents.compare")
    for name in ("obs", "method"):
        if not getattr(config, name):
            raise ValueError(f"--{name} is empty; name at least one")
    check_ranges(config)
    groups: dict[str, list[TrainConfig]] = {
        f"{obs} {method}": [training(config, obs, method, seed, arguments[place + 1 :]) for seed in range(config.seeds)]
        for obs, method in itertools.product(config.obs, config.method)
    }
    trainings = {config.runs / run_name(one): one for group in groups.values() for one in group}
    for name in REPORT:  # checked before the trainings, which take hours
        check_replaceable(config.out / name)
    run_missing(trainings, config.parallel)
    outcomes = {label: [read_outcome(config.runs / run_name(one)) for one in g] for label, g in groups.items()}
    busy = remark(*(run.others for found in outcomes.values() for run in found if run.others is not None))
    table, others = results_table(outcomes), f"\n{busy}\n" * bool(busy) + _other_settings(trainings)
    try:
        config.out.mkdir(parents=True, exist_ok=True)
        write_text(config.out / "report.md", table + PICTURE + others)
        found = {label: [asdict(run) for run in of_one] for label, of_one in outcomes.items()}
        write_text(config.out / "results.json", json.dumps(found, indent=2) + "\n")
        draw_curves(outcomes, config.out / "curves.png")
    finally:  # printed even if the report cannot be written
        print(table + others)
    print(f"wrote {config.out}: curves.png, report.md, results.json")


def training(config: CompareConfig, obs: str, method: str, seed: int, settings: list[str]) -> TrainConfig:
    """Return the configuration of a run: the preset, changed by the given settings of agents.train.

    Raises:
        ValueError: A setting is out of range, or is set by the comparison itself.
    """
    own = ["--obs", obs, "--method", method, "--grids", str(config.grids), "--seed", str(seed)]
    own += ["--preset", config.preset, "--parallel", "auto" if config.parallel == 1 else "off"]
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
