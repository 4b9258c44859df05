"""Heat map of Φ over the table, oriented as in the overhead camera: the robot at the top, y to the right."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from envs.push.geometry import GRID_HALF_SIZE, PUCK_RADIUS, TABLE_SIZE
from perception.visualize.landscape import STEP, Landscape, Wall

START_COLOR, CHOSEN_COLOR, BLOCKED_COLOR = "#1fb53a", "#ff2fa0", "#c5d6e8"


def draw_heatmap(
    landscapes: Sequence[Sequence[Landscape]], walls: Iterable[Wall], grids: Float[np.ndarray, "grids 2"]
) -> Figure:
    """Draw Φ in grey for each landscape, given in rows, the walls, and the demonstrated states in colour.

    The colour of a state is V_d ⊕ Ṽ_g as seen from the start (green). The state that attains the maximum Φ(start) is
    pink; states outside Δ(start) are small. Φ is not defined where the puck would be inside a wall. The active reset
    grids, given by their centres [m], are dashed.
    """
    walls = list(walls)
    figure = Figure(figsize=(9.5 * len(landscapes[0]), 5.5 * len(landscapes)), layout="constrained", dpi=110)
    rows = figure.subplots(len(landscapes), len(landscapes[0]), squeeze=False)
    for axes, landscape in zip(rows.flat, itertools.chain(*landscapes), strict=True):
        _draw(figure, axes, landscape, walls)
        for x, y in grids:
            corner, side = (y - GRID_HALF_SIZE, x - GRID_HALF_SIZE), 2 * GRID_HALF_SIZE
            axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor="white", ls="--", zorder=2))
    return figure


def _draw(figure: Figure, axes: Axes, landscape: Landscape, walls: Iterable[Wall]) -> None:
    x, y, half = landscape.x, landscape.y, STEP / 2
    extent = (y[0] - half, y[-1] + half, x[-1] + half, x[0] - half)
    shown = axes.imshow(landscape.potential, cmap="Greys_r", extent=extent, interpolation="nearest", vmin=0)
    axes.set_facecolor(BLOCKED_COLOR)
    figure.colorbar(shown, ax=axes, label="grey: Φ with the puck at rest there", shrink=0.9, pad=0.01)
    for center, size in walls:
        corner = center[1] - size[1], center[0] - size[0]
        axes.add_patch(Rectangle(corner, 2 * size[1], 2 * size[0], facecolor="#5b7fa8", edgecolor="black", zorder=2))
    sizes = [26 if near else 7 for near in landscape.in_range]
    ahead, left = landscape.states.T
    dots = axes.scatter(left, ahead, s=sizes, c=landscape.scores, cmap="viridis", zorder=3)
    worth = (
        f"dots: {landscape.joined} of a demonstrated state, small out of range\n"
        "(V_d: from it to the goal as demonstrated, Ṽ_g: from the start to it)"
    )
    figure.colorbar(dots, ax=axes, label=worth, shrink=0.9, pad=0.01)
    axes.plot(*landscape.goal[::-1], "x", color="#d62728", ms=9, mew=2, label="goal", zorder=4)
    axes.add_patch(
        Circle(tuple(landscape.start[::-1]), PUCK_RADIUS, fill=False, edgecolor=START_COLOR, lw=2.5, zorder=4)
    )
    axes.plot(*landscape.start[::-1], "o", color=START_COLOR, ms=7, label="start", zorder=5)
    axes.plot(*landscape.end_effector[::-1], "^", color=START_COLOR, ms=8, mec="black", label="end effector", zorder=5)
    if landscape.chosen is not None:
        at = landscape.states[landscape.chosen][::-1]
        axes.plot(*at, "o", color=CHOSEN_COLOR, ms=9, mec="white", label="chosen state", zorder=6)
    axes.set_xlim(-TABLE_SIZE[1] / 2, TABLE_SIZE[1] / 2)
    axes.set_ylim(TABLE_SIZE[0] / 2, -TABLE_SIZE[0] / 2)
    axes.set_aspect("equal")
    axes.set_xlabel("puck y [m]")
    axes.set_ylabel("puck x [m]")
    axes.set_title(f"Φ over the table: {landscape.title}")
    axes.plot([], [], "o", color="#3b528b", ms=5, label="demonstrated state")
    axes.plot([], [], "s", color=BLOCKED_COLOR, ms=9, label="puck inside a wall")
    axes.plot([], [], ls="--", color="grey", label="reset grid")
    axes.legend(loc="lower right", fontsize=8, borderaxespad=2.5)
