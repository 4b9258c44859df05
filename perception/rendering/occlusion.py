"""Occlusion test: intersection of rays with the geoms in front of a body, with the cheapest tests first.

1. Bounding spheres against the capsule from the camera to the hits, all geoms at once.
2. Oriented bounding boxes against each ray: a box that the ray enters behind the hit does not occlude it. For box geoms
   this test is exact.
3. MuJoCo's intersection for the remaining pairs, one geom at a time. `mj_multiRay` is not used because it filters by
   group only and is reported to miss geoms.
"""

import mujoco
import numpy as np
from jaxtyping import Bool, Float, Int

_MARGIN = 1e-6  # a surface that touches the body does not occlude it [m]
_TINY = 1e-12
_UP = np.array([[0.0, 0.0, 1.0]])
_MESHES = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF)


def cast(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    geom: int,
    origin: Float[np.ndarray, "3"],
    directions: Float[np.ndarray, "rays 3"],
) -> Float[np.ndarray, " rays"]:
    """Intersect rays with one geom, world frame [m].

    Returns:
        Ray parameter of the first hit, shape (rays,); ``inf`` for a miss.
    """
    kind = model.geom_type[geom]
    if kind in _MESHES:
        hits = [mujoco.mj_rayMesh(model, data, geom, origin, ray) for ray in directions]
    elif kind == mujoco.mjtGeom.mjGEOM_HFIELD:
        hits = [mujoco.mj_rayHfield(model, data, geom, origin, ray) for ray in directions]
    else:
        pose = data.geom_xpos[geom], data.geom_xmat[geom], model.geom_size[geom]
        hits = [mujoco.mju_rayGeom(*pose, origin, ray, kind) for ray in directions]
    distances = np.array(hits, dtype=float)
    return np.where(distances >= 0, distances, np.inf)


def encloses(model: mujoco.MjModel, data: mujoco.MjData, geom: int, point: Float[np.ndarray, "3"]) -> bool:
    """Return whether a point is inside a geom: a ray from it crosses the surface an odd number of times.

    Args:
        model: MuJoCo model.
        data: MuJoCo state.
        geom: Id of the geom.
        point: Point, world frame, shape (3,) [m].
    """
    center, half = model.geom_aabb[geom].reshape(2, 3)
    local = (point - data.geom_xpos[geom]) @ data.geom_xmat[geom].reshape(3, 3) - center
    inside = False
    while (np.abs(local) <= half).all() and np.isfinite(step := cast(model, data, geom, point, _UP)[0]):
        inside, point = not inside, point + (step + _MARGIN) * _UP[0]
    return inside


class Occluders:
    """Geoms that can occlude a body. As in OpenGL, those around the camera do not: their inner side is not drawn."""

    def __init__(self, model: mujoco.MjModel, geoms: Int[np.ndarray, " geoms"]) -> None:
        self._model = model
        is_plane = model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_PLANE
        self._planes = geoms[is_plane]
        self._geoms = geoms[~is_plane]
        self._radii = model.geom_rbound[self._geoms]
        self._boxes = model.geom_aabb[self._geoms].reshape(-1, 2, 3)  # centre and half sizes in the geom's frame
        self._is_box = model.geom_type[self._geoms] == mujoco.mjtGeom.mjGEOM_BOX

    def hide(
        self,
        data: mujoco.MjData,
        origin: Float[np.ndarray, "3"],
        directions: Float[np.ndarray, "rays 3"],
        depths: Float[np.ndarray, " rays"],
        near: float,
    ) -> Bool[np.ndarray, " rays"]:
        """Return which rays hit an occluder between the near plane and their hit of the body, shape (rays,).

        Args:
            data: MuJoCo state.
            origin: Camera position, world frame, shape (3,) [m].
            directions: Rays of unit length along the optical axis, world frame, shape (rays, 3).
            depths: Depth at which each ray hits the body, shape (rays,) [m].
            near: Depth of the near plane [m].
        """
        hidden = self._hidden_by_planes(data, origin, directions, depths, near)
        close = self._close_to_view(data, origin, directions, depths)
        if close.size == 0:
            return hidden
        crossed = self._boxes_crossed(data, close, origin, directions, depths, near)
        hidden |= crossed[self._is_box[close]].any(axis=0)
        for index in np.flatnonzero(crossed.any(axis=1) & ~self._is_box[close]):
            geom = int(self._geoms[close[index]])
            if encloses(self._model, data, geom, origin):
                continue
            rays = np.flatnonzero(crossed[index] & ~hidden)
            hits = cast(self._model, data, geom, origin, directions[rays])
            hidden[rays] = (hits > near) & (hits < depths[rays] - _MARGIN)
        return hidden

    def _hidden_by_planes(
        self,
        data: mujoco.MjData,
        origin: Float[np.ndarray, "3"],
        directions: Float[np.ndarray, "rays 3"],
        depths: Float[np.ndarray, " rays"],
        near: float,
    ) -> Bool[np.ndarray, " rays"]:
        hidden = np.zeros(len(depths), dtype=bool)
        for geom in self._planes.tolist():
            normal = data.geom_xmat[geom].reshape(3, 3)[:, 2]
            height = (origin - data.geom_xpos[geom]) @ normal
            if height <= 0:  # planes are visible from above only, as in OpenGL
                continue
            below = np.flatnonzero(height + depths * (directions @ normal) < 0)
            if below.size:
                hits = cast(self._model, data, geom, origin, directions[below])
                hidden[below] |= (hits > near) & (hits < depths[below] - _MARGIN)
        return hidden

    def _close_to_view(
        self,
        data: mujoco.MjData,
        origin: Float[np.ndarray, "3"],
        directions: Float[np.ndarray, "rays 3"],
        depths: Float[np.ndarray, " rays"],
    ) -> Int[np.ndarray, " close"]:
        """Return the geoms whose bounding sphere intersects a capsule around all segments from camera to hits."""
        ends = directions * depths[:, None]
        axis = ends.mean(axis=0)
        spread = ends - axis
        reach = self._radii + np.sqrt((spread * spread).sum(axis=1).max())
        centers = data.geom_xpos[self._geoms] - origin
        along = np.clip(centers @ axis / (axis @ axis), 0.0, 1.0)
        apart = centers - along[:, None] * axis
        return np.flatnonzero((apart * apart).sum(axis=1) <= reach * reach)

    def _boxes_crossed(
        self,
        data: mujoco.MjData,
        close: Int[np.ndarray, " close"],
        origin: Float[np.ndarray, "3"],
        directions: Float[np.ndarray, "rays 3"],
        depths: Float[np.ndarray, " rays"],
        near: float,
    ) -> Bool[np.ndarray, "close rays"]:
        """Return which rays cross which bounding boxes between the near plane and their hit (slab test)."""
        geoms = self._geoms[close]
        frames = data.geom_xmat[geoms].reshape(-1, 3, 3)
        centers, halves = self._boxes[close, 0], self._boxes[close, 1]
        start = ((origin - data.geom_xpos[geoms])[:, None, :] @ frames)[:, 0] - centers
        inverse = directions @ frames
        inverse = 1.0 / np.where(np.abs(inverse) < _TINY, _TINY, inverse)
        lower, upper = (-halves - start)[:, None] * inverse, (halves - start)[:, None] * inverse
        enter = np.minimum(lower, upper).max(axis=-1)
        leave = np.maximum(lower, upper).min(axis=-1)
        # Of a box geom, OpenGL draws the outer side beyond the near plane; of others, the bounding box begins anywhere.
        begins = np.where(self._is_box[close][:, None], enter, leave)
        return (enter <= leave) & (begins > near) & (enter < depths - _MARGIN)
