"""Plots of learning curves."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agents.report.outcome import Groups, Outcome, columns
from agents.runs.log import PROGRESS, Row, read_progress
from perception.picture import write_picture

Curve = tuple[Sequence[float], Sequence[float]]  # environment steps or minutes (n,), values (n,)
LOGGED = {
    "train/value": "mean value of the batch",
    "train/clipped_targets": "share of clipped targets",
    "train/ent_coef": "temperature",
    "rollout/ep_len_mean": "steps of a training episode",
}
"""What `draw_trainings` shows, with the labels of the axes."""


def quartiles(curves: Sequence[Curve], points: int = 100, first: float | None = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the quartiles of a value over seeds; a run that ended early keeps its last value.

    Args:
        curves: One curve per seed, each with at least one value.
        points: Number of points on the common axis.
        first: Value at step or minute 0; None takes the first of each curve.

    Returns:
        Environment steps or minutes (points,), and first quartile, median and third quartile (3, points).

    Raises:
        ValueError: There is no curve, or a curve is empty.
    """
    if not curves or any(len(places) == 0 for places, _ in curves):
        raise ValueError("a run has no evaluation")
    axis = np.linspace(0, max(places[-1] for places, _ in curves), points)
    values = [np.interp(axis, [0, *places], [value[0] if first is None else first, *value]) for places, value in curves]
    return axis, np.percentile(values, [25, 50, 75], axis=0)


def draw_curves(groups: Groups, path: Path) -> None:
    """Plot the success rate over environment steps and, where known, minutes: median and quartiles over the seeds."""

    def draw(axes: Sequence[Axes], label: str, outcomes: Sequence[Outcome], color: str) -> None:
        left, right = axes
        _draw(left, label, [(run.steps, run.rates) for run in outcomes], color)
        if all(run.minutes for run in outcomes):
            _draw(right, label, [(run.minutes, run.rates) for run in outcomes], color)

    figure, rows = _figure(groups, 2, draw)
    for left, right in rows:
        left.set(xlabel="environment steps", ylabel="success rate", ylim=(-0.02, 1.02))
        right.set(xlabel="minutes, evaluations included", ylim=(-0.02, 1.02))
    write_picture(figure, path, dpi=100)


def draw_trainings(groups: Groups, path: Path) -> None:
    """Plot what the learner logs (`LOGGED`) over environment steps: median and quartiles over the seeds."""

    def draw(axes: Sequence[Axes], label: str, outcomes: Sequence[Outcome], color: str) -> None:
        logs = [read_progress(Path(run.directory) / PROGRESS) for run in outcomes]
        for plot, name in zip(axes, LOGGED, strict=True):
            curves = [_logged(rows, name) for rows in logs]
            if all(len(places) for places, _ in curves):
                _draw(plot, label, curves, color, first=None)

    figure, rows = _figure(groups, len(LOGGED), draw)
    for axes in rows:
        for plot, label in zip(axes, LOGGED.values(), strict=True):
            plot.set(xlabel="environment steps", ylabel=label)
    write_picture(figure, path, dpi=100)


def plain(label: str) -> str:
    """Return a label that Matplotlib shows as it is: "$" begins a formula there, and "_" hides it."""
    shown = label.encode(errors="replace").decode().replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def color(number: int) -> tuple[float, ...]:
    """Return the color of a row of the table."""
    place = number % 20
    return colormaps["tab20"](2 * place if place < 10 else 2 * place - 19)  # the ten full colors first


def _figure(groups: Groups, width: int, draw: Callable[..., None]) -> tuple[Figure, Iterator[Sequence[Axes]]]:
    """Return a figure with one row of plots per column of the table, and its rows of plots."""
    found = columns(groups)
    figure = Figure(figsize=(4.5 * width + 4, 3.2 * len(found)), layout="constrained")
    grid = figure.subplots(len(found), width, squeeze=False)
    for row, (title, of_column) in zip(grid, found.items(), strict=True):
        for number, (label, outcomes) in enumerate(of_column.items()):
            draw(row, plain(label), outcomes, color(number))
        row[0].set_title(title, loc="left")
        handles, labels = row[0].get_legend_handles_labels()
        row[-1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8)
    return figure, iter(grid)


def _logged(rows: Sequence[Row], name: str) -> Curve:
    there = [row for row in rows if name in row]
    return [row["step"] for row in there], [row[name] for row in there]


def _draw(axes: Axes, label: str, curves: Sequence[Curve], color: str, first: float | None = 0.0) -> None:
    axis, (low, median, high) = quartiles(curves, first=first)
    axes.plot(axis, median, label=f"{label} ({len(curves)})", color=color)
    axes.fill_between(axis, low, high, color=color, alpha=0.2)
