"""An object in a cloud of a whole scene, without the ids of a simulator: planes removed, the rest clustered.

Both steps are Open3D's: RANSAC (Fischler and Bolles, 1981) and DBSCAN (Ester et al., 1996).
"""

import numpy as np
from jaxtyping import Float

from perception.point_cloud import open3d, open3d_cloud

_CANDIDATES = 200  # planes that RANSAC tries; enough for one that holds a quarter of the points


def remove_planes(
    points: Float[np.ndarray, "points 3"], count: int = 1, tolerance: float = 0.005, seed: int = 0
) -> Float[np.ndarray, "kept 3"]:
    """Remove the largest planes, such as a table and a wall, one after another.

    Args:
        points: Points, shape (points, 3) [m].
        count: Number of planes.
        tolerance: Distance from a plane up to which a point belongs to it [m].
        seed: Seed of RANSAC; the result depends on nothing else.
    """
    for _ in range(count):
        if len(points) < 3:
            break
        open3d().utility.random.seed(seed)
        # With probability 1 all candidates are compared, so that the result does not depend on the number of threads.
        _, inside = open3d_cloud(points).segment_plane(tolerance, 3, _CANDIDATES, probability=1.0)
        points = np.delete(points, inside, axis=0)
    return points


def clusters(
    points: Float[np.ndarray, "points 3"], gap: float = 0.015, min_points: int = 5
) -> list[Float[np.ndarray, "cluster 3"]]:
    """Split a cloud into clusters by DBSCAN, the largest first.

    Args:
        points: Points, shape (points, 3) [m].
        gap: Distance up to which two points are neighbours [m]; more than the spacing of the pixels on the object.
        min_points: Number of neighbours, itself included, from which on a point is no noise.
    """
    if not len(points):
        return []
    labels = np.asarray(open3d_cloud(points).cluster_dbscan(gap, min_points))
    return sorted((points[labels == label] for label in range(labels.max() + 1)), key=len, reverse=True)


def segment_object(
    points: Float[np.ndarray, "points 3"],
    near: Float[np.ndarray, "3"] | None = None,
    planes: int = 1,
    tolerance: float = 0.005,
    gap: float = 0.015,
    min_points: int = 5,
    seed: int = 0,
) -> Float[np.ndarray, "object 3"]:
    """Return the points of one object: of the clusters beside the planes, that with the centroid nearest to a point.

    Points within ``tolerance`` of the table are lost, and what is closer than ``gap`` becomes one with the object, such
    as a hand that pushes it. Against the simulator's ids (tests/perception/test_segmentation.py), the centroid of the
    cube of robosuite's Lift is off by less than 3 mm, and that of the puck alone on the table likewise (median). A puck
    that is pushed is off by 1 to 2.5 cm, by less than 5 mm if the points above its height are cropped; in the slot,
    with walls 1.5 cm beside it, by 0.6 to 2.5 cm (medians).

    Args:
        points: Points of the scene, cropped to the workspace, shape (points, 3) [m].
        near: Where the object is expected, such as its last centroid, shape (3,) [m]; None for the largest cluster.
        planes: Number of planes to remove; see `remove_planes`.
        tolerance: See `remove_planes` [m].
        gap: See `clusters` [m].
        min_points: See `clusters`.
        seed: See `remove_planes`.

    Returns:
        Points of the object, shape (object, 3) [m]; none if there is no cluster.
    """
    found = clusters(remove_planes(points, planes, tolerance, seed), gap, min_points)
    if not found:
        return points[:0]
    if near is None:
        return found[0]
    return min(found, key=lambda cluster: float(np.linalg.norm(cluster.mean(axis=0) - near)))
