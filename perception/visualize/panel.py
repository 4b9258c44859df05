"""Figure of the stages from image to point cloud: RGB, depth, mask and points of each camera."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, MaxNLocator
from mpl_toolkits.mplot3d import Axes3D

from perception.visualize.scene import View

HALF_BOX = (0.04, 0.04, 0.02)  # smallest half sizes of the axes around the sampled points [m]
DEPTH_QUANTILES = (0.02, 0.75)  # the colour scale covers the table, not the room behind it
POINT_COLOR = "#ff2fa0"
POINTS_STYLE: dict[str, Any] = {"s": 9, "c": POINT_COLOR, "edgecolors": "white", "linewidths": 0.4}


def draw_panel(views: Sequence[View]) -> Figure:
    """Draw one row per view: RGB, depth [m], mask, and the cloud with the sampled points in the world frame [m]."""
    figure = Figure(figsize=(15, 3.9 * len(views)), layout="constrained", dpi=110)
    for row, view in enumerate(views):
        rgb, depth, mask = (figure.add_subplot(len(views), 4, 4 * row + i + 1) for i in range(3))
        cloud = figure.add_subplot(len(views), 4, 4 * row + 4, projection="3d")
        draw_rgb(rgb, view)
        rgb.set_title(view.title)
        low, high = np.quantile(view.depth, DEPTH_QUANTILES)
        shown = depth.imshow(view.depth, cmap="viridis_r", interpolation="nearest", vmin=low, vmax=high)
        figure.colorbar(shown, ax=depth, label="depth [m]", shrink=0.85, extend="both")
        depth.set_title(f"depth, {view.depth.shape[1]} × {view.depth.shape[0]}")
        mask.imshow(view.mask, cmap="gray", interpolation="nearest", vmin=0, vmax=1)
        mask.set_title(f"mask, {view.mask.shape[1]} × {view.mask.shape[0]}: {view.mask.sum()} pixels")
        for axes in (depth, mask):
            axes.set_xlabel("column [pixels]")
            axes.set_ylabel("row [pixels]")
        draw_cloud(cloud, view)
    return figure


def draw_rgb(axes: Axes, view: View) -> None:
    """Draw the image with the sampled points."""
    axes.imshow(view.rgb, extent=(0, view.rgb.shape[1], view.rgb.shape[0], 0))
    axes.scatter(*view.pixels.T, **POINTS_STYLE)
    axes.set_xticks([])
    axes.set_yticks([])


def draw_cloud(axes: Axes3D, view: View) -> None:
    """Draw cloud and sampled points in the world frame, with equal axis scales, seen from the side of the cameras."""
    axes.scatter(*view.cloud.T, s=9, c="0.35", depthshade=False, linewidths=0, label=f"cloud, {len(view.cloud)} points")
    distinct = len(np.unique(view.points, axis=0))
    axes.scatter(*view.points.T, s=26, c=POINT_COLOR, depthshade=False, label=f"sampled, {distinct} points")
    half = np.maximum(np.ptp(view.points, axis=0) / 2, HALF_BOX)
    middle = (view.points.max(axis=0) + view.points.min(axis=0)) / 2
    axes.set(**{f"{name}lim": limits for name, *limits in zip("xyz", middle - half, middle + half, strict=True)})
    axes.set_box_aspect(half, zoom=0.85)
    for axis, name in ((axes.xaxis, "x"), (axes.yaxis, "y"), (axes.zaxis, "z")):
        axis.set_major_locator(MaxNLocator(4, prune="both"))
        axis.set_major_formatter(FormatStrFormatter("%.2f"))
        axis.set_label_text(f"{name} [m]")
        axis.set_tick_params(labelsize=7, pad=0)
        axis.labelpad = 0
    axes.set_zlabel("")
    axes.text2D(0.0, 0.53, "z [m]", transform=axes.transAxes)  # replaces the axis label, which would be cut off
    axes.view_init(elev=40, azim=20)
    axes.legend(loc="upper left", fontsize=8)
    axes.set_title("world frame")
