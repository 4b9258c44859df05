"""OpenGL renderer of colours and depth of a whole image, in one pass."""

import mujoco
import numpy as np
from jaxtyping import Float32, UInt8

from envs.opengl import Drawing
from perception.cameras import find_id, intrinsics
from perception.rendering.geoms import drawn_geoms
from perception.rendering.gl import depth_in_metres


class ColourRenderer:
    """Renderer of what one camera sees, sites included, without shadows and reflections, which double the time.

    Args:
        model: MuJoCo model; a rebuilt model needs a new renderer.
        camera: Name of the camera.
        width: Image width [pixels].
        height: Image height [pixels].

    Attributes:
        intrinsics: Projection of the images.

    Raises:
        ValueError: Unknown camera, or invalid image size.
    """

    def __init__(self, model: mujoco.MjModel, camera: str, width: int, height: int) -> None:
        self.intrinsics = intrinsics(model, camera, width, height)
        self._model = model
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._view.fixedcamid = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
        self._option = mujoco.MjvOption()
        # Group 0 holds the collision geoms where there are visual ones, and everything in other models.
        self._option.geomgroup[0] = not (drawn_geoms(model) & (model.geom_group > 0)).any()
        self._scene = mujoco.MjvScene(model, maxgeom=model.ngeom + model.nsite + 100)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._viewport = mujoco.MjrRect(0, 0, width, height)
        self._colour = np.empty((height, width, 3), np.uint8)
        self._depth = np.empty((height, width), np.float32)
        self._drawing = Drawing(model, width, height)

    def render(
        self, data: mujoco.MjData
    ) -> tuple[UInt8[np.ndarray, "height width 3"], Float32[np.ndarray, "height width"]]:
        """Render the current state; row 0 is the top of the image.

        Returns:
            colour: Red, green and blue.
            depth: Distance along the optical axis [m], at MuJoCo's far plane where nothing is seen.

        Raises:
            GraphicsError: OpenGL is missing, or was used before this process was forked.
        """
        category = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, data, self._option, None, self._view, category, self._scene)
        with self._drawing.bound() as buffers:
            mujoco.mjr_render(self._viewport, self._scene, buffers)
            mujoco.mjr_readPixels(self._colour, self._depth, self._viewport, buffers)
        depth = depth_in_metres(self._model, self._depth)
        return np.ascontiguousarray(np.flipud(self._colour)), np.ascontiguousarray(np.flipud(depth))

    def close(self) -> None:
        """Free the buffers; repeated calls have no effect, and rendering again creates new buffers."""
        self._drawing.close()
