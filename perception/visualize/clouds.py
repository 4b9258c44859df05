"""Point clouds as PLY files and in Open3D's window."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from envs.opengl import GraphicsError
from perception.point_cloud import open3d

PATIENCE = 20  # timeout for a display that does not respond [s]
_OPEN_WINDOW = """
import glfw
glfw.ERROR_REPORTING = "exception"
glfw.init()
glfw.window_hint(glfw.VISIBLE, False)
glfw.create_window(64, 64, "", None, None)
"""


def write_cloud(
    path: Path, points: Float[np.ndarray, "points 3"], colors: Float[np.ndarray, "points 3"] | None = None
) -> None:
    """Write points [m], with optional colours in [0, 1], as a PLY file.

    Raises:
        OSError: The file cannot be written.
        ImportError: Open3D is missing.
    """
    if not open3d().io.write_point_cloud(str(path), _cloud(points, colors)):
        raise OSError(f"{path}: Open3D cannot write it")


def check_display() -> None:
    """Check that a window can be opened.

    Without a display, Open3D renders offscreen and its window blocks forever; a display that does not respond may block
    too. Therefore a window is first opened in another process, with GLFW, the library that Open3D uses.

    Raises:
        GraphicsError: The window did not open in time; the message names the display and the reason.
    """
    if sys.platform != "linux":
        return
    named = next((name for name in ("DISPLAY", "WAYLAND_DISPLAY") if os.environ.get(name)), None)
    variant = {"PYGLFW_LIBRARY_VARIANT": "wayland" if named == "WAYLAND_DISPLAY" else "x11"}
    command = [sys.executable, "-c", _OPEN_WINDOW]
    try:
        subprocess.run(command, env=os.environ | variant, timeout=PATIENCE, check=True, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        reason = f"no answer within {PATIENCE} s"
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.splitlines() or [f"status {error.returncode}"])[-1]
    else:
        return
    display = f"{named}={os.environ[named]}" if named else "neither DISPLAY nor WAYLAND_DISPLAY is set"
    raise GraphicsError(
        f"--window needs a display, and none can be used: {display} ({reason}); "
        "leave it out, the .ply files are written without it"
    )


def show_clouds(
    points: Float[np.ndarray, "points 3"],
    surroundings: Float[np.ndarray, "surroundings 3"],
    colors: Float[np.ndarray, "surroundings 3"],
) -> None:
    """Show the sampled points (pink) in the cloud of the scene, until the window is closed.

    Raises:
        GraphicsError: The window cannot be opened.
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
