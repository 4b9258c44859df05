"""Figure of a diagnosis: for each view, where the puck is seen, how far its centroid is off, pairs, and the probe."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from envs.push.geometry import PUCK_RADIUS, SLOT, TABLE_SIZE
from perception.diagnose.findings import ALIASED, Findings, Measured

HIDDEN_COLOR, BIAS_COLOR, WALL_COLOR = "#d62728", "#ff2fa0", "#5b7fa8"
NUMBERS = [f"{name} {axis}" for name in ("s_PE", "v_PE", "s_PG", "v_PG") for axis in "xy"]


def draw_diagnosis(measured: Sequence[Measured], findings: Sequence[Findings], advice: str) -> Figure:
    """Draw one row per view, under the advice."""
    figure = Figure(figsize=(15, 3.5 * len(measured) + 0.4), layout="constrained", dpi=72)
    figure.suptitle("\n".join(wrap(advice, 150)), fontsize=12)
    rows = figure.subplots(len(measured), 4, squeeze=False, gridspec_kw={"width_ratios": [1.5, 1, 1, 1]})
    for axes, view, found in zip(rows, measured, findings, strict=True):
        _draw_places(figure, axes[0], view, found)
        _draw_errors(axes[1], view, found)
        _draw_pairs(axes[2], view, found)
        _draw_probe(axes[3], found)
    return figure


def _draw_places(figure: Figure, axes: Axes, view: Measured, found: Findings) -> None:
    """Draw the positions of the puck on the table, oriented as in the overhead camera: the robot at the top."""
    for center, size in SLOT.walls().values():
        corner = center[1] - size[1], center[0] - size[0]
        axes.add_patch(Rectangle(corner, 2 * size[1], 2 * size[0], facecolor=WALL_COLOR, edgecolor="black"))
    order = np.argsort(-view.share)  # the least seen ones on top
    x, y = view.puck[order].T
    dots = axes.scatter(y, x, s=10, c=view.share[order], cmap="viridis", vmin=0, vmax=1)
    figure.colorbar(dots, ax=axes, label="share of the puck seen", location="bottom", shrink=0.7, aspect=40)
    x, y = view.puck[~view.visible].T
    axes.scatter(y, x, s=22, marker="x", c=HIDDEN_COLOR, label="puck not seen")
    if len(x):
        axes.legend(loc="lower right", fontsize=8)
    axes.set(xlabel="puck y [m]", ylabel="puck x [m]", aspect="equal")
    reach = np.abs(view.puck).max(axis=0) + 0.05
    axes.set_xlim(-min(reach[1], TABLE_SIZE[1] / 2), min(reach[1], TABLE_SIZE[1] / 2))
    axes.set_ylim(min(reach[0], TABLE_SIZE[0] / 2), -min(reach[0], TABLE_SIZE[0] / 2))
    axes.set_title(f"{found.name}: {found.seen:.0%} seen, {found.hidden:.1%} of the frames hidden", fontsize=10)


def _draw_errors(axes: Axes, view: Measured, found: Findings) -> None:
    """Draw the centroids relative to the puck, in the same orientation."""
    x, y = 1000 * view.error[view.visible].T
    axes.add_patch(Circle((0, 0), 1000 * PUCK_RADIUS, fill=False, edgecolor="0.4", lw=1.5))
    axes.scatter(y, x, s=6, c="0.25", alpha=0.35, linewidths=0)
    bias = 1000 * np.array(found.bias)
    if np.isfinite(bias).all():
        axes.annotate("", (bias[1], bias[0]), (0, 0), arrowprops={"arrowstyle": "->", "color": BIAS_COLOR, "lw": 2})
    axes.plot(0, 0, "+", color="0.4")
    limit = 1000 * PUCK_RADIUS * 1.1
    axes.set(xlim=(-limit, limit), ylim=(limit, -limit), aspect="equal", xlabel="y [mm]", ylabel="x [mm]")
    axes.set_title(f"centroid in the puck, bias ({bias[0]:.1f}, {bias[1]:.1f}) mm", fontsize=10)


def _draw_pairs(axes: Axes, view: Measured, found: Findings) -> None:
    """Draw the distances of the nearest clouds and of their states; ideal clouds are on the diagonal."""
    clouds, states = 1000 * view.pairs.clouds, 1000 * view.pairs.states
    far = view.pairs.excess > ALIASED
    axes.scatter(clouds[~far], states[~far], s=6, c="0.25", alpha=0.35, linewidths=0)
    axes.scatter(clouds[far], states[far], s=22, marker="x", c=HIDDEN_COLOR)
    limit = 1.05 * max(clouds.max(), states.max(), 1.5e3 * ALIASED)
    axes.plot([0, limit], [0, limit], c="0.6", lw=1)
    axes.plot([0, limit], [1000 * ALIASED, limit + 1000 * ALIASED], c=HIDDEN_COLOR, lw=1, ls="--")
    axes.set(xlim=(0, limit), ylim=(0, limit), xlabel="distance of another episode's nearest cloud [mm]")
    axes.set_ylabel("distance of its state [mm]")
    axes.set_title(f"{found.aliased:.1%} of the frames above the dashed line", fontsize=10)


def _draw_probe(axes: Axes, found: Findings) -> None:
    """Draw R² of the probe for each number of the state."""
    values = np.nan_to_num(np.array(found.recovered))
    colors = ["#3b528b" if name.startswith("s") else "#5ec962" for name in NUMBERS]
    axes.barh(NUMBERS, np.clip(values, 0, 1), color=colors)
    for row, value in enumerate(values):
        axes.text(max(min(value, 1), 0) + 0.02, row, f"{value:.2f}", va="center", fontsize=9)
    axes.set(xlim=(0, 1.18), xlabel="R² of the probe, held-out episodes")
    axes.invert_yaxis()
    axes.set_title("state from the encoder's features", fontsize=10)
