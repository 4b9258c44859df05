"""Compare observations and methods: ``python -m agents.compare --obs state pointcloud --seeds 3``."""

import itertools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from agents import runs
from agents.config import METHODS, PRESETS, Observation, TrainConfig, run_name
from agents.config.file import Settings
from agents.launch.local import run_missing
from agents.report.curves import draw_curves
from agents.report.table import Group, read_curve, results_table
from envs.command import one_line_errors
from envs.files import check_replaceable, write_text
from envs.ranges import COUNT, Range, check_ranges

PICTURE = """
Success rate over environment steps, median and quartiles over the seeds:

![Success rate over environment steps](curves.png)
"""
REPORT = ("report.md", "results.json", "curves.png")


@dataclass(frozen=True)
class CompareConfig:
    """Run what is missing or shorter, reuse what is there, draw learning curves and a table."""

    obs: tuple[Observation, ...] = ("state", "pointcloud")
    """Observations to compare."""
    method: tuple[str, ...] = ("buffer+potential+annealing",)
    """Rows of the paper's table, as agents.train names them."""
    seeds: Annotated[int, Range(1, 1000)] = 3
    """Seeds 0 … N − 1 of each."""
    grids: Literal[1, 2, 3] = 1
    """Active reset grids, with one demonstration each."""
    steps: Annotated[int | None, COUNT] = None
    """Environment steps of each run; default: the preset's."""
    preset: Literal["default", "paper"] = "default"
    """Settings of each run."""
    runs: Path = Path("runs")
    """Where runs are looked for, and written if missing; the report names those that have other settings."""
    out: Path = Path("comparison")
    """Directory of report.md, results.json and curves.png."""
    parallel: Annotated[int, Range(1, 1000)] = 2
    """Runs at a time, one thread each."""


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.compare``."""
    config = tyro.cli(CompareConfig, args=arguments, prog="python -m agents.compare")
    unknown = [m for m in config.method if m not in METHODS]
    if unknown:
        raise ValueError(f"--method: unknown methods {', '.join(unknown)}; known methods: {', '.join(METHODS)}")
    for name in ("obs", "method"):
        if not getattr(config, name):
            raise ValueError(f"--{name} is empty; name at least one")
    check_ranges(config)
    groups: list[Group] = list(itertools.product(config.obs, config.method))
    directories = {
        group: [config.runs / run_name(_training(config, group, seed)) for seed in range(config.seeds)]
        for group in groups
    }
    for name in REPORT:  # before the trainings, which take hours
        check_replaceable(config.out / name)
    trainings = [
        (_training(config, group, seed), directory)
        for group, found in directories.items()
        for seed, directory in enumerate(found)
    ]
    run_missing(trainings, config.parallel)
    results = {group: [runs.read_result(d) for d in found] for group, found in directories.items()}
    table, others = results_table(results), _other_settings(config, directories)
    try:
        config.out.mkdir(parents=True, exist_ok=True)
        write_text(config.out / "report.md", table + PICTURE + others)
        labelled = {" ".join(group): rows for group, rows in results.items()}
        write_text(config.out / "results.json", json.dumps(labelled, indent=2) + "\n")
        curves = {" ".join(group): [read_curve(d) for d in found] for group, found in directories.items()}
        draw_curves(curves, config.out / "curves.png")
    finally:  # where it cannot be written it can still be read
        print(table + others)
    print(f"wrote {config.out}: curves.png, report.md, results.json")


def _training(config: CompareConfig, group: Group, seed: int) -> TrainConfig:
    obs, method = group
    preset = PRESETS[config.preset][obs]
    steps = preset.steps if config.steps is None else config.steps
    one_process = replace(preset, parallel="off")  # the runs fill the cores
    return replace(one_process, grids=config.grids, method=method, seed=seed, steps=steps)


def _other_settings(config: CompareConfig, directories: dict[Group, list[Path]]) -> str:
    """Say which runs, found where they are looked for, were trained with settings other than those asked for."""
    lines = []
    for group, found in directories.items():
        for seed, directory in enumerate(found):
            wanted = Settings(_training(config, group, seed)).get_state()
            has = Settings(runs.read_config(directory)).get_state()
            other = [f"{name} {has[name]} ({wanted[name]})" for name in wanted if has[name] != wanted[name]]
            lines += [f"- {directory}: {', '.join(other)}\n"] * bool(other)
    return "".join(["\nTrained with other settings than those compared:\n\n", *lines]) if lines else ""


if __name__ == "__main__":
    main()
