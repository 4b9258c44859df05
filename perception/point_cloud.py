"""Pure functions from depth images to a fixed number of points."""

from types import ModuleType

import numpy as np
from jaxtyping import Bool, Float

from perception.cameras import Intrinsics

_DENSE = 4096  # beyond this many points they are thinned evenly before the farthest point sampling


def open3d() -> ModuleType:
    """Import Open3D on first use.

    Raises:
        ImportError: Open3D or a library of its is missing; one line names both.
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


def back_project(
    depth: Float[np.ndarray, "height width"], mask: Bool[np.ndarray, "height width"], camera: Intrinsics
) -> Float[np.ndarray, "points 3"]:
    """Turn the masked pixels into points of the camera frame (x right, y down, z forward).

    p = z · ((u + 0.5 − c_x) / f, (v + 0.5 − c_y) / f, 1), row by row. A pixel without a finite depth gives no point.

    Args:
        depth: Distance along the optical axis [m].
        mask: Pixels to keep.
        camera: Projection of the image.

    Returns:
        points_camera [m].

    Raises:
        ValueError: The image has another size than the projection.
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
    """Map points by a homogeneous pose, p' = R p + t; with ``camera_to_world``, from the camera to the world [m]."""
    return points @ pose[:3, :3].T + pose[:3, 3]


def crop(points: Float[np.ndarray, "points 3"], bounds: Float[np.ndarray, "2 3"]) -> Float[np.ndarray, "kept 3"]:
    """Keep the points inside the box ``[lower, upper]``, in their order [m]."""
    lower, upper = np.asarray(bounds)
    return points[np.all((points >= lower) & (points <= upper), axis=-1)]


def sample_points(points: Float[np.ndarray, "points 3"], num_points: int) -> Float[np.ndarray, "num_points 3"]:
    """Choose exactly ``num_points`` finite points by Open3D's farthest point sampling.

    Deterministic: it starts at the first point. Points that are not finite are left out. Where fewer distinct points
    than asked for are left, each is taken, and they repeat in turn.

    Args:
        points: At least one finite point.
        num_points: How many to return.

    Raises:
        ValueError: There is no finite point to choose.
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
    """Choose by farthest point sampling; Open3D gives fewer than ``num_points`` where no more are distinct."""
    o3d = open3d()
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(np.ascontiguousarray(points, dtype=np.float64)))
    return np.array(cloud.farthest_point_down_sample(num_points).points)
