"""Plots of learning curves."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from perception.picture import write_picture

Curve = tuple[np.ndarray, np.ndarray]  # environment steps (n,), success rates (n,)


def quartiles(curves: list[Curve], points: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Return the quartiles of the success rate over seeds; a run that ended early keeps its last success rate.

    Args:
        curves: One curve per seed, each with at least one evaluation.
        points: Number of points on the common axis.

    Returns:
        Environment steps (points,), and first quartile, median and third quartile (3, points).

    Raises:
        ValueError: There is no curve, or a curve is empty.
    """
    if not curves or any(len(steps) == 0 for steps, _ in curves):
        raise ValueError("a run has no evaluation")
    axis = np.linspace(0, max(steps[-1] for steps, _ in curves), points)
    rates = [np.interp(axis, np.concatenate([[0], steps]), np.concatenate([[0.0], rate])) for steps, rate in curves]
    return axis, np.percentile(rates, [25, 50, 75], axis=0)


def draw_curves(groups: dict[str, list[Curve]], path: Path) -> None:
    """Plot median (line) and quartiles (area) of the success rate over environment steps for each group."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for label, curves in groups.items():
        axis, (low, median, high) = quartiles(curves)
        (line,) = axes.plot(axis / 1000, median, label=f"{label} ({len(curves)})")
        axes.fill_between(axis / 1000, low, high, color=line.get_color(), alpha=0.2)
    axes.set(xlabel="environment steps [thousands]", ylabel="success rate", ylim=(-0.02, 1.02))
    axes.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    write_picture(figure, path, dpi=120)
    plt.close(figure)


def draw_seeds(groups: dict[str, list[tuple[Sequence[float], ...]]], path: Path) -> None:
    """Plot the success rate over seconds and over environment steps, one line per seed.

    Args:
        groups: For each label a list over seeds of environment steps, seconds and success rates of the evaluations.
        path: Image file.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for number, (label, seeds) in enumerate(groups.items()):
        for seed, (steps, seconds, rates) in enumerate(seeds):
            style = {"color": f"C{number}", "alpha": 0.6, "label": label if seed == 0 else None}
            left.plot(seconds, rates, **style)
            right.plot(np.asarray(steps) / 1000, rates, **style)
    left.set(xlabel="seconds", ylabel="success rate", ylim=(-0.02, 1.02))
    left.set_xlim(left=0)
    right.set(xlabel="environment steps [thousands]")
    right.set_xlim(left=0)
    right.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    write_picture(figure, path, dpi=120)
    plt.close(figure)
