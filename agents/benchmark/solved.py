"""Time at which a training solved its task, and its summary over several seeds."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from agents import runs
from agents.config.train import Observation
from agents.runs.log import PROGRESS, Row, read_progress

THRESHOLDS: dict[Observation, float] = {"state": 0.95, "pointcloud": 0.90}
"""Success rate at which the task counts as solved, by observation; it is lower for clouds, because they contain no
velocity and parts of the puck can be hidden."""
IN_A_ROW = 2
"""Number of consecutive evaluations that must reach the threshold, so that a single lucky evaluation does not count."""


def solved(rows: Sequence[Row], threshold: float) -> tuple[int, float] | None:
    """Return when the task was solved: at the last of the first `IN_A_ROW` consecutive evaluations at the threshold.

    Args:
        rows: Rows of `progress.csv`, ordered by step; rows without an evaluation are skipped.
        threshold: Success rate that the evaluations must reach.

    Returns:
        Environment steps at that evaluation, and seconds from the start of the training until its result was known,
        including all evaluations; None if the task was not solved.
    """
    reached = 0
    for row in rows:
        if "eval/success_rate" not in row:
            continue
        reached = reached + 1 if row["eval/success_rate"] >= threshold else 0
        if reached == IN_A_ROW:
            return int(row["step"]), row["eval/seconds"]
    return None


def read_run(directory: Path) -> dict[str, Any]:
    """Read the results, learning curve and time shares of a finished run.

    Raises:
        FileNotFoundError: The run is not finished.
        ValueError: A file is damaged, or the log has no column `eval/seconds`.
    """
    config, result = runs.read_config(directory), runs.read_result(directory)
    rows = read_progress(directory / PROGRESS)
    evaluations = [row for row in rows if "eval/success_rate" in row]
    if any("eval/seconds" not in row for row in evaluations):
        raise ValueError(f"{directory / PROGRESS} has no eval/seconds; train anew with another --out")
    when = solved(evaluations, THRESHOLDS[config.obs])
    logged = [row for row in rows if any(name.startswith("time/learner/") for name in row)]
    return {
        "obs": config.obs,
        "seed": config.seed,
        "solved_steps": when and when[0],
        "solved_seconds": when and when[1],
        **{name: result[name] for name in ("success_rate", "mean_steps", "environment_steps", "seconds")},
        "shares": {
            name.removeprefix("time/"): share
            for name, share in (logged[-1] if logged else {}).items()
            if name.startswith(("time/learner/", "time/collector/"))
        },
        "curve": {
            "steps": [row["step"] for row in evaluations],
            "seconds": [row["eval/seconds"] for row in evaluations],
            "success_rate": [row["eval/success_rate"] for row in evaluations],
        },
    }


def summarise(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians, worst seeds and means over the runs of one observation (`read_run`).

    The time of a seed that did not solve the task is infinite; an infinite median or maximum is returned as None.
    """
    seconds = [math.inf if run["solved_seconds"] is None else run["solved_seconds"] for run in found]
    steps = [math.inf if run["solved_steps"] is None else run["solved_steps"] for run in found]
    rates = [run["success_rate"] for run in found]
    taken = [run["mean_steps"] for run in found if run["mean_steps"] is not None]
    names = sorted({name for run in found for name in run["shares"]})
    return {
        "seeds": len(found),
        "solved": sum(run["solved_seconds"] is not None for run in found) / len(found),
        "median_seconds": _finite(statistics.median(seconds)),
        "worst_seconds": _finite(max(seconds)),
        "median_steps": _finite(statistics.median(steps)),
        "worst_steps": _finite(max(steps)),
        "success_rate": statistics.fmean(rates),
        "worst_success_rate": min(rates),
        "mean_steps": statistics.fmean(taken) if taken else None,
        "environment_steps": max(run["environment_steps"] for run in found),
        "run_seconds": statistics.fmean(run["seconds"] for run in found),
        "shares": {name: statistics.fmean(run["shares"].get(name, 0.0) for run in found) for name in names},
    }


def table(summaries: dict[Observation, dict[str, Any]]) -> Table:
    """Make the table of summaries, one row per observation."""
    laid = Table(title=f"time to the solved task: {IN_A_ROW} evaluations in a row at or above the threshold")
    laid.add_column("observation")
    headings = ("threshold", "median", "worst seed", "steps, median / worst", "solved", "final success, mean / worst")
    for heading in (*headings, "mean steps", "whole run"):
        laid.add_column(heading, justify="right")
    for obs, found in summaries.items():
        laid.add_row(
            obs,
            f"{THRESHOLDS[obs]:.0%}",
            _seconds(found["median_seconds"]),
            _seconds(found["worst_seconds"]),
            " / ".join("-" if n is None else f"{n:.0f}" for n in (found["median_steps"], found["worst_steps"])),
            f"{found['solved']:.0%} of {found['seeds']}",
            f"{found['success_rate']:.1%} / {found['worst_success_rate']:.0%}",
            "-" if found["mean_steps"] is None else f"{found['mean_steps']:.1f}",
            f"{found['environment_steps']} steps, {found['run_seconds']:.0f} s",
        )
    return laid


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _seconds(value: float | None) -> str:
    return "not solved" if value is None else f"{value:.0f} s"
