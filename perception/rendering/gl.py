"""OpenGL renderer of depth and mask: one segmentation pass, from which ids and depth are read together."""

import mujoco
import numpy as np
from jaxtyping import Bool, Float32

from envs.opengl import Drawing, GraphicsError
from perception.cameras import find_id, intrinsics
from perception.rendering.geoms import split_geoms

_OTHER, _TARGET = 0, 1


class GLRenderer:
    """Reference renderer; the depth covers the whole image and is clipped at MuJoCo's far plane."""

    def __init__(self, model: mujoco.MjModel, camera: str, body: str, width: int, height: int) -> None:
        self.intrinsics = intrinsics(model, camera, width, height)
        self._model = model
        targets, others = split_geoms(model, body)
        self._segments = np.full(model.ngeom, -1)  # MuJoCo omits objects with segment −1 from a segmentation pass
        self._segments[others], self._segments[targets] = _OTHER, _TARGET
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._view.fixedcamid = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = 1
        self._option.sitegroup[:] = 0
        self._option.flags[:] = 0
        self._option.flags[mujoco.mjtVisFlag.mjVIS_STATIC] = 1
        self._scene = mujoco.MjvScene(model, maxgeom=model.ngeom + 1)
        for flag in (
            mujoco.mjtRndFlag.mjRND_SHADOW,
            mujoco.mjtRndFlag.mjRND_REFLECTION,
            mujoco.mjtRndFlag.mjRND_SKYBOX,
            mujoco.mjtRndFlag.mjRND_FOG,
            mujoco.mjtRndFlag.mjRND_HAZE,
        ):
            self._scene.flags[flag] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = 1
        self._scene.flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = 1
        self._viewport = mujoco.MjrRect(0, 0, width, height)
        self._color = np.empty((height, width, 3), dtype=np.uint8)
        self._buffer = np.empty((height, width), dtype=np.float32)
        self._drawing = Drawing(model, width, height)

    def render(
        self, data: mujoco.MjData
    ) -> tuple[Float32[np.ndarray, "height width"], Bool[np.ndarray, "height width"]]:
        """Render the current state; see `Renderer.render`.

        Raises:
            GraphicsError: OpenGL is missing, or was used before this process was forked.
        """
        mujoco.mjv_updateScene(
            self._model,
            data,
            self._option,
            None,
            self._view,
            mujoco.mjtCatBit.mjCAT_STATIC | mujoco.mjtCatBit.mjCAT_DYNAMIC,
            self._scene,
        )
        geom_type = int(mujoco.mjtObj.mjOBJ_GEOM)
        for geom in self._scene.geoms[: self._scene.ngeom]:
            geom.segid = self._segments[geom.objid] if geom.objtype == geom_type else -1
        try:
            with self._drawing.bound() as buffers:
                mujoco.mjr_render(self._viewport, self._scene, buffers)
                mujoco.mjr_readPixels(self._color, self._buffer, self._viewport, buffers)
        except GraphicsError as error:
            raise GraphicsError(f"renderer 'gl': {error}, or use renderer 'ray'") from error
        # Rows are ordered from bottom to top; the colour of a pixel is its segment + 1, and 0 for the background.
        mask = np.flipud(self._color[..., 0] == _TARGET + 1)
        return np.ascontiguousarray(np.flipud(depth_in_metres(self._model, self._buffer))), np.ascontiguousarray(mask)

    def close(self) -> None:
        """Free the buffers; repeated calls have no effect, and rendering again creates new buffers."""
        self._drawing.close()


def depth_in_metres(
    model: mujoco.MjModel, buffer: Float32[np.ndarray, "height width"]
) -> Float32[np.ndarray, "height width"]:
    """Convert MuJoCo's depth buffer to the distance along the optical axis [m].

    The reversed buffer holds b = n (f − z) / (z (f − n)), which is 1 at the near plane n and 0 at the far plane f.
    Hence z = n f / (n + b (f − n)).
    """
    extent = model.stat.extent
    near, far = model.vis.map.znear * extent, model.vis.map.zfar * extent
    return (near * far / (near + buffer.astype(np.float64) * (far - near))).astype(np.float32)
