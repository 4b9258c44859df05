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
from agents.config.methods import DEFAULT
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
    """Train the runs that are missing or too short, reuse the others, and write learning curves and a results table."""

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
    """Number of trainings that run in parallel, with one thread each."""


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
    for name in REPORT:  # checked before the trainings, which take hours
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
    finally:  # printed even if the report cannot be written
        print(table + others)
    print(f"wrote {config.out}: curves.png, report.md, results.json")


def _training(config: CompareConfig, group: Group, seed: int) -> TrainConfig:
    obs, method = group
    preset = PRESETS[config.preset][obs]
    steps = preset.steps if config.steps is None else config.steps
    one_process = replace(preset, parallel="off")  # the parallel runs already use all cores
    return replace(one_process, grids=config.grids, method=method, seed=seed, steps=steps)


def _other_settings(config: CompareConfig, directories: dict[Group, list[Path]]) -> str:
    """List the existing runs whose settings differ from the requested ones, in Markdown."""
    lines = []
    for group, found in directories.items():
        for seed, directory in enumerate(found):
            wanted = Settings(_training(config, group, seed)).get_state()
            has = Settings(runs.read_config(directory)).get_state()
            other = [f"{name} {has.get(name)} ({wanted[name]})" for name in wanted if has.get(name) != wanted[name]]
            lines += [f"- {directory}: {', '.join(other)}\n"] * bool(other)
    return "".join(["\nTrained with other settings than those compared:\n\n", *lines]) if lines else ""


if __name__ == "__main__":
    main()
