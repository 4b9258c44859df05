"""Point clouds from depth images: back-projection, transformation, cropping and sampling to a fixed number."""

from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from perception.cameras import Intrinsics

_DENSE = 4096  # larger clouds are subsampled evenly to this size before farthest point sampling


def open3d() -> ModuleType:
    """Import Open3D on first use.

    Raises:
        ImportError: Open3D or one of its libraries is missing; the message (one line) names what to install.
    """
    try:
        import open3d
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ImportError(
            f"point clouds need Open3D, which cannot be imported ({reason}): install open3d and, on Debian, "
            "libegl1 libgl1 libusb-1.0-0 libgomp1; MUJOCO_GL may stay unset, rays are cast without OpenGL"
        ) from error
    return open3d


def open3d_cloud(points: Float[np.ndarray, "points 3"]) -> Any:
    """Return the points as an `open3d.geometry.PointCloud`."""
    o3d = open3d()
    return o3d.geometry.PointCloud(o3d.utility.Vector3dVector(np.ascontiguousarray(points, dtype=np.float64)))


def back_project(
    depth: Float[np.ndarray, "height width"], mask: Bool[np.ndarray, "height width"], camera: Intrinsics
) -> Float[np.ndarray, "points 3"]:
    """Back-project the masked pixels to points in the camera frame (x right, y down, z forward).

    p = z · ((u + 0.5 − c_x) / f, (v + 0.5 − c_y) / f, 1), in row-major order. Pixels without finite depth are ignored.

    Args:
        depth: Distance along the optical axis, shape (height, width) [m].
        mask: Pixels to keep, shape (height, width).
        camera: Projection of the image.

    Returns:
        Points, camera frame, shape (points, 3) [m].

    Raises:
        ValueError: The size of the image differs from that of the projection.
    """
    if depth.shape != (camera.height, camera.width) or mask.shape != depth.shape:
        raise ValueError(
            f"depth {depth.shape} and mask {mask.shape} must have the camera's size {(camera.height, camera.width)}"
        )
    rows, columns = np.nonzero(mask & np.isfinite(depth))
    z = depth[rows, columns].astype(np.float64)
    cx, cy = camera.center
    scale = z / camera.focal
    return np.stack([(columns + 0.5 - cx) * scale, (rows + 0.5 - cy) * scale, z], axis=-1)


def transform(points: Float[np.ndarray, "points 3"], pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "points 3"]:
    """Transform points [m] by a homogeneous pose, p' = R p + t; ``camera_to_world`` maps from camera to world frame."""
    return points @ pose[:3, :3].T + pose[:3, 3]


def crop(points: Float[np.ndarray, "points 3"], bounds: Float[np.ndarray, "2 3"]) -> Float[np.ndarray, "kept 3"]:
    """Return the points inside the closed box ``[lower, upper]`` [m], in their order."""
    lower, upper = np.asarray(bounds)
    return points[np.all((points >= lower) & (points <= upper), axis=-1)]


def sample_points(points: Float[np.ndarray, "points 3"], num_points: int) -> Float[np.ndarray, "num_points 3"]:
    """Sample exactly ``num_points`` finite points by Open3D's farthest point sampling.

    The sampling is deterministic: it starts at the first point. Points that are not finite are ignored. If there are
    fewer distinct points than ``num_points``, all are returned and repeated cyclically.

    Args:
        points: Points, of which at least one is finite, shape (points, 3) [m].
        num_points: Number of points to return.

    Returns:
        Sampled points, shape (num_points, 3) [m].

    Raises:
        ValueError: There is no finite point.
        ImportError: Open3D is missing.
    """
    points = points[np.isfinite(points).all(axis=-1)]
    count = len(points)
    if count == 0:
        raise ValueError(
            f"cannot sample {num_points} points from an empty cloud, or one without a finite point; "
            "check that the body is visible"
        )
    dense = max(_DENSE, num_points)
    if count > dense:
        points = points[np.linspace(0, count - 1, dense).astype(int)]
    if count > num_points:
        points = _farthest(points, num_points)
    return points[np.arange(num_points) % len(points)]


def _farthest(points: Float[np.ndarray, "points 3"], num_points: int) -> Float[np.ndarray, "chosen 3"]:
    """Sample by farthest point sampling; returns fewer than ``num_points`` if there are fewer distinct points."""
    return np.array(open3d_cloud(points).farthest_point_down_sample(num_points).points)
