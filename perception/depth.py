"""Point clouds from depth images of any camera, given by its calibration."""

import numpy as np
from jaxtyping import Float, Shaped

from perception.point_cloud import transform


def cloud_from_depth(
    depth: Shaped[np.ndarray, "height width"],
    intrinsics: Float[np.ndarray, "3 3"],
    camera_to_world: Float[np.ndarray, "4 4"],
) -> Float[np.ndarray, "points 3"]:
    """Back-project a depth image to points in the world frame.

    p = T · (z K⁻¹ (u + 0.5, v + 0.5, 1)ᵀ) for column u and row v, in row-major order. Pixels without depth (0,
    negative, NaN or infinite) are ignored. To keep the pixels of a mask, pass ``np.where(mask, depth, 0)``; for a box
    in the world, `crop` the result.

    Args:
        depth: Distance along the optical axis, not along the ray, floating point, shape (height, width) [m].
        intrinsics: Camera matrix K of an undistorted image, shape (3, 3) [pixels]. The centre of the first pixel is
            (0.5, 0.5); if the calibration has it at (0, 0), as in OpenCV and ROS, add 0.5 to c_x and c_y.
        camera_to_world: Pose T of the camera frame (x right, y down, z forward) in the world frame, shape (4, 4).

    Returns:
        Points, world frame, shape (points, 3) [m].

    Raises:
        ValueError: The depth is not an image of floating point numbers, K is not upper triangular with positive focal
            lengths, or T is not a rigid transformation.
    """
    if depth.ndim != 2 or not np.issubdtype(depth.dtype, np.floating):
        raise ValueError(
            f"depth has shape {depth.shape} and type {depth.dtype}; give an image of floating point numbers in metres, "
            "such as millimetres / 1000"
        )
    if intrinsics.shape != (3, 3) or np.tril(intrinsics, -1).any() or not (np.diag(intrinsics) > 0).all():
        raise ValueError(f"intrinsics is {intrinsics.tolist()}; give [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]]")
    rotation = camera_to_world[:3, :3]
    rigid = np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3) and np.linalg.det(rotation) > 0
    if camera_to_world.shape != (4, 4) or not rigid:
        raise ValueError(f"camera_to_world is {camera_to_world.tolist()}; give a rotation and a translation, (4, 4)")
    rows, columns = np.nonzero(np.isfinite(depth) & (depth > 0))
    pixels = np.stack([columns + 0.5, rows + 0.5, np.ones(len(rows))])
    rays = np.linalg.solve(intrinsics, pixels).T
    return transform(rays * depth[rows, columns, None], camera_to_world)
