"""Clouds for Open3D: PLY files and its window."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from envs.graphics import GraphicsError
from perception.point_cloud import open3d


def write_cloud(
    path: Path, points: Float[np.ndarray, "points 3"], colors: Float[np.ndarray, "points 3"] | None = None
) -> None:
    """Write points [m], with colours in [0, 1] if given, as a PLY file.

    Raises:
        OSError: The file cannot be written.
        ImportError: Open3D is missing.
    """
    if not open3d().io.write_point_cloud(str(path), _cloud(points, colors)):
        raise OSError(f"{path}: Open3D cannot write it")


def check_display() -> None:
    """Raise unless a window can be opened.

    Raises:
        GraphicsError: There is no display.
    """
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise GraphicsError(
            "--window needs a display (DISPLAY is not set); leave it out, the .ply files are written without it"
        )


def show_clouds(
    points: Float[np.ndarray, "points 3"],
    surroundings: Float[np.ndarray, "surroundings 3"],
    colors: Float[np.ndarray, "surroundings 3"],
) -> None:
    """Show sampled points, in pink, within the scene's cloud, until the window is closed.

    Raises:
        GraphicsError: The window does not open.
        ImportError: Open3D is missing.
    """
    o3d = open3d()
    window = o3d.visualization.Visualizer()
    if not window.create_window("perception.visualize"):
        raise GraphicsError(
            "Open3D cannot open a window on this display; leave --window out, the .ply files are written"
        )
    window.add_geometry(_cloud(surroundings, colors))
    for point in points:
        ball = o3d.geometry.TriangleMesh.create_sphere(0.002).translate(point)
        window.add_geometry(ball.paint_uniform_color([1.0, 0.1, 0.6]))
    window.run()
    window.destroy_window()


def _cloud(points: np.ndarray, colors: np.ndarray | None) -> Any:
    o3d = open3d()
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(np.ascontiguousarray(points, dtype=np.float64)))
    if colors is not None:
        cloud.colors = o3d.utility.Vector3dVector(np.ascontiguousarray(colors, dtype=np.float64))
    return cloud
