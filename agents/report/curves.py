"""Plots of learning curves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agents.report.outcome import Outcome
from perception.picture import write_picture

Curve = tuple[Sequence[float], Sequence[float]]  # environment steps or minutes (n,), success rates (n,)


def quartiles(curves: Sequence[Curve], points: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Return the quartiles of the success rate over seeds; a run that ended early keeps its last success rate.

    Args:
        curves: One curve per seed, each with at least one evaluation.
        points: Number of points on the common axis.

    Returns:
        Environment steps or minutes (points,), and first quartile, median and third quartile (3, points).

    Raises:
        ValueError: There is no curve, or a curve is empty.
    """
    if not curves or any(len(places) == 0 for places, _ in curves):
        raise ValueError("a run has no evaluation")
    axis = np.linspace(0, max(places[-1] for places, _ in curves), points)
    rates = [np.interp(axis, [0, *places], [0.0, *rate]) for places, rate in curves]
    return axis, np.percentile(rates, [25, 50, 75], axis=0)


def draw_curves(groups: dict[str, list[Outcome]], path: Path) -> None:
    """Plot the success rate over environment steps and, where known, minutes: median and quartiles over the seeds."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for number, (label, outcomes) in enumerate(groups.items()):
        _draw(left, label, [(run.steps, run.rates) for run in outcomes], f"C{number}")
        if all(run.minutes for run in outcomes):
            _draw(right, label, [(run.minutes, run.rates) for run in outcomes], f"C{number}")
    left.set(xlabel="environment steps", ylabel="success rate", ylim=(-0.02, 1.02))
    right.set(xlabel="minutes, evaluations included")
    left.legend(loc="lower right", fontsize=8)
    write_picture(figure, path, dpi=120)


def _draw(axes: Axes, label: str, curves: Sequence[Curve], color: str) -> None:
    axis, (low, median, high) = quartiles(curves)
    axes.plot(axis, median, label=f"{label} ({len(curves)})", color=color)
    axes.fill_between(axis, low, high, color=color, alpha=0.2)
