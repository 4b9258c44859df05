"""Ray-casting renderer of depth and mask, which casts only the rays that can hit the body; needs no OpenGL.

Ray directions are scaled to unit length along the optical axis, so that the ray parameter of a hit is its z-depth.
"""

import mujoco
import numpy as np
from jaxtyping import Bool, Float, Float32

from perception.cameras import MUJOCO_TO_OPENCV, find_id, intrinsics
from perception.rendering.geoms import split_geoms
from perception.rendering.occlusion import Occluders, cast, encloses

_CORNERS = np.stack(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], indexing="ij"), axis=-1).reshape(8, 3)
_TINY = 1e-12


def cast_cylinder(
    origin: Float[np.ndarray, "3"], directions: Float[np.ndarray, "rays 3"], radius: float, half_height: float
) -> Float[np.ndarray, " rays"]:
    """Intersect rays with a solid cylinder around the z axis, in the frame of the cylinder [m].

    The ray enters the cylinder at the later of its entries into the infinite cylinder and into the slab |z| ≤ h. This
    is a hit if it comes before the earlier of the two exits.

    Returns:
        Ray parameter of the entry, shape (rays,); ``inf`` for a miss or if the origin is inside.
    """
    dx, dy, dz = directions.T
    a = dx * dx + dy * dy + _TINY
    b = origin[0] * dx + origin[1] * dy
    root = np.sqrt(np.maximum(b * b - a * (origin[0] ** 2 + origin[1] ** 2 - radius * radius), 0.0))
    inverse = 1.0 / np.where(np.abs(dz) < _TINY, _TINY, dz)
    lower, upper = (-half_height - origin[2]) * inverse, (half_height - origin[2]) * inverse
    enter = np.maximum((-b - root) / a, np.minimum(lower, upper))
    leave = np.minimum((-b + root) / a, np.maximum(lower, upper))
    return np.where((root > 0) & (enter < leave) & (enter > 0), enter, np.inf)


class RayRenderer:
    """Analytic ray casting of one object, with occlusion by all other drawn geoms; the depth is 0 outside the mask."""

    def __init__(self, model: mujoco.MjModel, camera: str, body: str, width: int, height: int) -> None:
        self.intrinsics = intrinsics(model, camera, width, height)
        self._model = model
        self._camera = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
        self._targets, others = split_geoms(model, body)
        self._occluders = Occluders(model, others)
        (cx, cy), focal = self.intrinsics.center, self.intrinsics.focal
        x, y = np.meshgrid((np.arange(width) + 0.5 - cx) / focal, (np.arange(height) + 0.5 - cy) / focal)
        self._rays = np.stack([x, y, np.ones_like(x)], axis=-1)  # camera frame
        self._boxes = model.geom_aabb[self._targets].reshape(-1, 2, 3)  # centre and half sizes in the geom's frame

    def render(
        self, data: mujoco.MjData
    ) -> tuple[Float32[np.ndarray, "height width"], Bool[np.ndarray, "height width"]]:
        """Cast the rays of the current state; see `Renderer.render`."""
        near = self._model.vis.map.znear * self._model.stat.extent  # the near plane of OpenGL
        origin = data.cam_xpos[self._camera]
        rotation = data.cam_xmat[self._camera].reshape(3, 3) * MUJOCO_TO_OPENCV
        depth = np.full(self._rays.shape[:2], np.inf)
        for index, geom in enumerate(self._targets.tolist()):
            rows, columns = self._region(data, index, origin, rotation, near)
            seen = rows.start < rows.stop and columns.start < columns.stop
            if seen and not encloses(self._model, data, geom, origin):
                hits = self._cast_target(data, geom, origin, rotation, self._rays[rows, columns].reshape(-1, 3))
                hits = np.where(hits > near, hits, np.inf).reshape(depth[rows, columns].shape)
                depth[rows, columns] = np.minimum(depth[rows, columns], hits)
        mask = depth < np.inf
        if mask.any():
            pixels = np.nonzero(mask)
            hidden = self._occluders.hide(data, origin, self._rays[pixels] @ rotation.T, depth[pixels], near)
            mask[pixels] = ~hidden
        depth[~mask] = 0.0
        return depth.astype(np.float32), mask

    def close(self) -> None:
        """Do nothing; there are no resources to release."""

    def _region(
        self,
        data: mujoco.MjData,
        index: int,
        origin: Float[np.ndarray, "3"],
        rotation: Float[np.ndarray, "3 3"],
        near: float,
    ) -> tuple[slice, slice]:
        """Return the rows and columns that can see a geom, bounded by the projected corners of its bounding box."""
        geom = self._targets[index]
        center, half = self._boxes[index]
        world = data.geom_xpos[geom] + (center + _CORNERS * half) @ data.geom_xmat[geom].reshape(3, 3).T
        corners = (world - origin) @ rotation
        height, width = self._rays.shape[:2]
        if corners[:, 2].max() <= near:
            return slice(0, 0), slice(0, 0)
        if corners[:, 2].min() <= near:  # the projection of a box that crosses the near plane is unbounded
            return slice(0, height), slice(0, width)
        image = corners[:, :2] / corners[:, 2:] * self.intrinsics.focal + self.intrinsics.center
        (left, top), (right, bottom) = np.floor(image.min(axis=0)), np.ceil(image.max(axis=0))
        rows = slice(int(min(max(top, 0), height)), int(min(max(bottom, 0), height)))
        return rows, slice(int(min(max(left, 0), width)), int(min(max(right, 0), width)))

    def _cast_target(
        self,
        data: mujoco.MjData,
        geom: int,
        origin: Float[np.ndarray, "3"],
        rotation: Float[np.ndarray, "3 3"],
        rays: Float[np.ndarray, "rays 3"],
    ) -> Float[np.ndarray, " rays"]:
        if self._model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_CYLINDER:
            return cast(self._model, data, geom, origin, rays @ rotation.T)
        frame = data.geom_xmat[geom].reshape(3, 3)
        radius, half_height, _ = self._model.geom_size[geom]
        return cast_cylinder((origin - data.geom_xpos[geom]) @ frame, rays @ (rotation.T @ frame), radius, half_height)
