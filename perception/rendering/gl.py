"""Depth and mask by OpenGL: one segmentation pass, ids and depth read back together.

A process has one OpenGL context. It is made current for every image, so that several environments in one process cannot
return each other's, and the renderers of one model's cameras share one set of uploaded meshes.
"""

import atexit
import os
import sys
import warnings
import weakref
from importlib import import_module
from typing import Any

import mujoco
import numpy as np
from jaxtyping import Bool, Float32

from perception.cameras import find_id, intrinsics
from perception.rendering.geoms import split_geoms

_LIBRARIES = {
    "egl": "libEGL.so.1",
    "osmesa": "libOSMesa.so",
    "glfw": "libglfw.so.3 and a display",
    "cgl": "the OpenGL framework",
}
_SLICES = 128  # polygons around a cylinder; MuJoCo's 28 lose 1 % of a puck's area
_OTHER, _TARGET = 0, 1
_inherited_driver = False


def _after_fork() -> None:
    global _inherited_driver
    egl = sys.modules.get("mujoco.egl")
    _inherited_driver |= _Surface._context is not None or getattr(egl, "EGL_DISPLAY", None) is not None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Surface:
    """Offscreen buffers and uploaded meshes of one model."""

    _process: int | None = None
    _context: Any = None
    _live: dict[int, "_Surface"] = {}  # noqa: RUF012  (by id of the model, which the surface keeps alive)

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model, self.users, self.size = model, 0, (0, 0)
        quality = model.vis.quality
        slices = quality.numslices
        quality.numslices = max(slices, _SLICES)
        try:
            self.buffers = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
        finally:
            quality.numslices = slices
        self.buffers.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR

    @classmethod
    def acquire(cls, model: mujoco.MjModel) -> "_Surface":
        """Return the model's surface in this process, making it if need be, with its context current."""
        if _inherited_driver:
            # A software driver's threads do not survive the fork: the child's first image would never come back.
            raise RuntimeError(
                "renderer 'gl' cannot start in a process forked after OpenGL was used; "
                "start workers by 'spawn' or 'forkserver', or use renderer 'ray'"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # GLFW warns, fails later, and warns again when it is cleaned up
            # Each backend fails in its own way: a missing library is an AttributeError in PyOpenGL.
            try:
                if cls._context is None:
                    cls._process, cls._context = os.getpid(), _make_context()
                    atexit.register(cls._shut_down)  # after, hence run before, the driver's own exit handler
                cls._context.make_current()
                surface = cls._live.get(id(model)) or cls(model)
            except Exception as error:
                if not cls._live:
                    cls._context = None
                raise RuntimeError(_explain(error)) from error
        cls._live[id(model)] = surface
        surface.users += 1
        return surface

    def bind(self, width: int, height: int) -> None:
        """Make the context current and the offscreen buffer as large as the image."""
        self._context.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.buffers)
        if self.size != (width, height):
            mujoco.mjr_resizeOffscreen(width, height, self.buffers)
            self.size = (width, height)

    def release(self) -> None:
        """Give one use back; the last one frees the buffers."""
        self.users -= 1
        if self.users == 0 and self._live.get(id(self.model)) is self and self._process == os.getpid():
            del self._live[id(self.model)]
            self._context.make_current()
            self.buffers.free()

    @classmethod
    def _shut_down(cls) -> None:
        if cls._process != os.getpid() or cls._context is None:
            return
        try:
            cls._context.make_current()
        except Exception:  # each backend has its own
            # Another library's exit handler has closed the display, and with it all that is to be freed here.
            cls._context._context = None
        else:
            for surface in cls._live.values():
                surface.buffers.free()
            cls._context.free()
        cls._live.clear()
        cls._context = None


def _backend() -> str:
    """Name the backend that MUJOCO_GL asks for; by default EGL, CGL on macOS."""
    return os.environ.get("MUJOCO_GL", "").lower().strip() or ("cgl" if sys.platform == "darwin" else "egl")


def _make_context() -> Any:
    if _backend() not in _LIBRARIES:
        raise ValueError("no backend of this name")
    context_class = import_module(f"mujoco.{_backend()}").GLContext
    context = context_class.__new__(context_class)
    context._context = None  # read by its destructor even if the constructor fails
    context.__init__(64, 64)
    return context


def _explain(error: Exception) -> str:
    """Name the library that is missing and the variable that chooses another, in one line."""
    backend = _backend()
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    library = _LIBRARIES.get(backend, "an OpenGL library")
    return (
        f"renderer 'gl' needs {library}; it fails with MUJOCO_GL={backend} ({reason}): install it, "
        "set MUJOCO_GL to egl or osmesa, or use renderer 'ray'"
    )


class GLRenderer:
    """The reference renderer: depth of the whole image, clipped at MuJoCo's far plane."""

    def __init__(self, model: mujoco.MjModel, camera: str, body: str, width: int, height: int) -> None:
        self.intrinsics = intrinsics(model, camera, width, height)
        self._model = model
        targets, others = split_geoms(model, body)
        self._segments = np.full(model.ngeom, -1)  # MuJoCo leaves objects with segment −1 out of a segmentation pass
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
        self._surface: _Surface | None = None
        self._finalizer: weakref.finalize | None = None

    def render(
        self, data: mujoco.MjData
    ) -> tuple[Float32[np.ndarray, "height width"], Bool[np.ndarray, "height width"]]:
        """Render the current state; see `Renderer.render`.

        Raises:
            RuntimeError: OpenGL is missing.
        """
        self._bind()
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
        assert self._surface is not None
        mujoco.mjr_render(self._viewport, self._scene, self._surface.buffers)
        mujoco.mjr_readPixels(self._color, self._buffer, self._viewport, self._surface.buffers)
        # Rows come bottom up; the colour of a pixel is its segment + 1, the background's 0.
        mask = np.flipud(self._color[..., 0] == _TARGET + 1)
        return np.ascontiguousarray(np.flipud(self._metres())), np.ascontiguousarray(mask)

    def close(self) -> None:
        """Free the buffers; calling it again does nothing, rendering again makes new ones."""
        if self._finalizer is not None:
            self._finalizer()
        self._surface = self._finalizer = None

    def _bind(self) -> None:
        if self._surface is None or _inherited_driver:
            self._surface = _Surface.acquire(self._model)
            self._finalizer = weakref.finalize(self, self._surface.release)
            self._finalizer.atexit = False
        self._surface.bind(self._viewport.width, self._viewport.height)

    def _metres(self) -> Float32[np.ndarray, "height width"]:
        """Turn the depth buffer into metres.

        MuJoCo's reversed buffer holds b = n (f − z) / (z (f − n)), 1 at the near plane n and 0 at the far plane f,
        which gives z = n f / (n + b (f − n)).
        """
        extent = self._model.stat.extent
        near, far = self._model.vis.map.znear * extent, self._model.vis.map.zfar * extent
        return (near * far / (near + self._buffer.astype(np.float64) * (far - near))).astype(np.float32)
