"""Plots of the statistics over seeds: performance profiles and probabilities of improvement."""

from pathlib import Path

from matplotlib.figure import Figure

from agents.report.curves import color, plain
from agents.report.outcome import Groups, columns
from agents.report.statistics import THRESHOLDS, probability_of_improvement, profile
from agents.report.table import rates
from perception.picture import write_picture


def draw_profiles(groups: Groups, path: Path) -> None:
    """Plot the share of seeds with a success rate above a threshold, with 95 % intervals, and which are better."""
    found = columns(groups)
    rows = max(len(of_column) for of_column in found.values())
    figure = Figure(figsize=(14, (2.2 + 0.25 * rows) * len(found)), layout="constrained")
    for axes, (title, of_column) in zip(figure.subplots(len(found), 2, squeeze=False), found.items(), strict=True):
        left, right = axes
        for number, outcomes in enumerate(of_column.values()):
            share, low, high = profile(rates(outcomes))
            left.step(THRESHOLDS, share, where="post", color=color(number))
            left.fill_between(THRESHOLDS, low, high, step="post", color=color(number), alpha=0.15)
        left.set_title(title, loc="left")
        left.set(xlabel="success rate τ", ylabel="share of seeds above τ", ylim=(-0.02, 1.02))
        scores = [rates(outcomes) for outcomes in of_column.values()]
        beaten = [[probability_of_improvement(of, over) for over in scores] for of in scores]
        shown = right.imshow(beaten, vmin=0, vmax=1, cmap="RdBu")
        places = range(len(scores))
        right.set_xticks(places, [str(number + 1) for number in places])
        right.set_yticks(places, [f"{plain(label)} {number + 1}" for number, label in enumerate(of_column)], fontsize=7)
        for number, text in enumerate(right.get_yticklabels()):
            text.set(color=color(number), fontweight="bold")
        right.set_title("probability that a seed of the row\nis better than one of the column", fontsize=9)
        figure.colorbar(shown, ax=right)
    write_picture(figure, path, dpi=100)
