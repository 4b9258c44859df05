"""Compare observations and methods: ``python -m agents.compare --obs state pointcloud --seeds 3``."""

import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from agents import runs
from agents.config import METHODS, PRESETS, Observation, TrainConfig, run_name
from agents.config_json import Settings
from agents.files import write_text
from agents.launch import is_finished, start_or_resume
from agents.plots import draw_curves
from agents.runlog import PROGRESS, read_progress
from envs.errors import one_line_errors
from envs.files import check_replaceable
from envs.ranges import MANY, Range, check_ranges

PICTURE = """
Success rate over environment steps, median and quartiles over the seeds:

![Success rate over environment steps](curves.png)
"""
SECONDS_BETWEEN_LOOKS = 0.2  # at the running trainings
RANGES: dict[str, Range] = {"seeds": (1, 1000), "steps": (1, MANY), "parallel": (1, 1000)}
REPORT = ("report.md", "results.json", "curves.png")
Group = tuple[Observation, str]  # observation, method


@dataclass(frozen=True)
class CompareConfig:
    """Run what is missing or shorter, reuse what is there, draw learning curves and a table."""

    obs: tuple[Observation, ...] = ("state", "pointcloud")
    """Observations to compare."""
    method: tuple[str, ...] = ("buffer+potential+annealing",)
    """Rows of the paper's table, as agents.train names them."""
    seeds: int = 3
    """Seeds 0 … N − 1 of each."""
    grids: Literal[1, 2, 3] = 1
    """Active reset grids, with one demonstration each."""
    steps: int | None = None
    """Environment steps of each run; default: the preset's."""
    preset: Literal["default", "paper"] = "default"
    """Settings of each run."""
    runs: Path = Path("runs")
    """Where runs are looked for, and written if missing; the report names those that have other settings."""
    out: Path = Path("comparison")
    """Directory of report.md, results.json and curves.png."""
    parallel: int = 2
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
    check_ranges(config, RANGES)
    groups: list[Group] = list(itertools.product(config.obs, config.method))
    directories = {
        group: [config.runs / run_name(_training(config, group, seed)) for seed in range(config.seeds)]
        for group in groups
    }
    for name in REPORT:  # before the trainings, which take hours
        check_replaceable(config.out / name)
    _run_missing(config, directories)
    results = {group: [runs.read_result(d) for d in found] for group, found in directories.items()}
    table, others = _table(results), _other_settings(config, directories)
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


def read_curve(directory: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the evaluations of a run.

    Returns:
        Environment steps (n,) and success rates (n,).
    """
    rows = [row for row in read_progress(directory / PROGRESS) if "eval/success_rate" in row]
    return np.array([row["step"] for row in rows]), np.array([row["eval/success_rate"] for row in rows])


def _training(config: CompareConfig, group: Group, seed: int) -> TrainConfig:
    obs, method = group
    preset = PRESETS[config.preset][obs]
    steps = preset.steps if config.steps is None else config.steps
    one_process = replace(preset, parallel="off")  # the runs fill the cores
    return replace(one_process, grids=config.grids, method=method, seed=seed, steps=steps)


def _run_missing(config: CompareConfig, directories: dict[Group, list[Path]]) -> None:
    """Start or resume every run that is not finished, `parallel` at a time; one that fails does not stop the others.

    Raises:
        ValueError: Runs failed; names their directories, after the others are finished.
    """
    waiting = [
        (directory, start_or_resume(_training(config, group, seed), directory))
        for group, found in directories.items()
        for seed, directory in enumerate(found)
        if not is_finished(directory, _training(config, group, seed).steps)
    ]
    running: list[tuple[Path, subprocess.Popen]] = []
    failed: list[str] = []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        while waiting or running:
            while waiting and len(running) < config.parallel:
                directory, command = waiting.pop(0)
                print("running", shlex.join(command[1:]), flush=True)
                running.append((directory, subprocess.Popen(command, env=environment)))
            time.sleep(SECONDS_BETWEEN_LOOKS)
            for directory, process in [entry for entry in running if entry[1].poll() is not None]:
                running.remove((directory, process))
                if process.returncode != 0:
                    failed.append(str(directory))
                    print(f"failed with status {process.returncode}: {directory}", file=sys.stderr)
    except KeyboardInterrupt:  # which the runs have got too, and write their checkpoints
        for _, process in running:
            process.wait()
        raise
    if failed:
        raise ValueError(f"{', '.join(failed)} failed; the same command tries again what is missing")


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


def _table(results: dict[Group, list[dict[str, Any]]]) -> str:
    """Mean ± standard deviation, quartiles of the success rate [%] and steps, as the paper's table, in Markdown."""
    lines = [
        "| observation | method | seeds | success, mean ± std [%] | Q1 / median / Q3 | steps | training | hours |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (obs, method), rows in results.items():
        rate = 100 * np.array([r["success_rate"] for r in rows])
        steps = [r["mean_steps"] for r in rows if r["mean_steps"] is not None]
        taken = [r["environment_steps"] for r in rows]
        q1, median, q3 = np.percentile(rate, [25, 50, 75])
        cells = [
            obs,
            method,
            len(rows),
            f"{rate.mean():.1f} ± {rate.std():.1f}",
            f"{q1:.0f} / {median:.0f} / {q3:.0f}",
            f"{np.mean(steps):.1f}" if steps else "-",
            "–".join(map(str, sorted({min(taken), max(taken)}))),
            f"{sum(r['seconds'] for r in rows) / 3600:.2f}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
