"""Offscreen rendering with OpenGL: one context per process, and colour images.

The context is made current before every image, so that several environments in one process do not return each other's
images. All renderers of one model share one set of uploaded meshes. Afterwards the previous context of the thread is
restored, because other libraries (such as the cameras of robosuite and Gymnasium) draw into the current one.
"""

import atexit
import os
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import mujoco
import numpy as np

LIBRARIES = {
    "egl": "libEGL.so.1 (Debian: libegl1 libegl-mesa0)",
    "osmesa": "libOSMesa.so (Debian: libosmesa6)",
    "glfw": "libglfw.so.3 and a display",
    "cgl": "the OpenGL framework",
}
SLICES = 128  # polygons around a cylinder; with MuJoCo's default of 28 the puck's area is 1 % too small
_inherited_driver = False


class GraphicsError(ImportError, RuntimeError):
    """OpenGL is missing or cannot be used; the message (one line) states what to install or set."""


def _after_fork() -> None:
    global _inherited_driver
    egl = sys.modules.get("mujoco.egl")
    _inherited_driver |= Surface._context is not None or getattr(egl, "EGL_DISPLAY", None) is not None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Surface:
    """Offscreen buffers and uploaded meshes of one model, with a count of their users."""

    _process: int | None = None
    _context: Any = None
    _live: dict[int, "Surface"] = {}  # noqa: RUF012  (by id of the model, which the surface keeps alive)

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model, self.users, self.size = model, 0, (0, 0)
        quality = model.vis.quality
        slices = quality.numslices
        quality.numslices = max(slices, SLICES)
        try:
            self.buffers = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
        finally:
            quality.numslices = slices
        self.buffers.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR

    @classmethod
    def acquire(cls, model: mujoco.MjModel) -> "Surface":
        """Return the model's surface in this process, created if necessary, and make its context current.

        Raises:
            GraphicsError: OpenGL is missing, or was used before this process was forked.
        """
        if _inherited_driver:
            # The threads of a software driver do not survive the fork: rendering in the child would block.
            raise GraphicsError(
                "OpenGL cannot start in a process forked after it was used; start workers by 'spawn' or 'forkserver'"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # GLFW warns before it fails, and again at clean-up
            # The type of error depends on the backend: PyOpenGL raises AttributeError for a missing library.
            try:
                if cls._context is None:
                    cls._process, cls._context = os.getpid(), _make_context()
                    atexit.register(cls._shut_down)  # registered after the driver's exit handler, so it runs before it
                cls._context.make_current()
                surface = cls._live.get(id(model)) or cls(model)
            except Exception as error:
                if not cls._live:
                    cls._context = None
                raise GraphicsError(_explain(error)) from error
        cls._live[id(model)] = surface
        surface.users += 1
        return surface

    def bind(self, width: int, height: int) -> None:
        """Make the context current and resize the offscreen buffer to the image."""
        self._context.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.buffers)
        if self.size != (width, height):
            mujoco.mjr_resizeOffscreen(width, height, self.buffers)
            self.size = (width, height)

    def release(self) -> None:
        """Release one use; the last release frees the buffers."""
        self.users -= 1
        if self.users == 0 and self._live.get(id(self.model)) is self and self._process == os.getpid():
            del self._live[id(self.model)]
            with _thread_lent():
                self._context.make_current()
                self.buffers.free()

    @classmethod
    def _shut_down(cls) -> None:
        if cls._process != os.getpid() or cls._context is None:
            return
        try:
            cls._context.make_current()
            for surface in cls._live.values():
                surface.buffers.free()
            cls._context.free()
        except Exception:  # the type depends on the backend
            # The exit handler of another library has closed the display, which has freed the context and the buffers.
            cls._context._context = None
        cls._live.clear()
        cls._context = None


class Drawing:
    """One use of a model's surface, for images of one size; released on close, garbage collection or exit."""

    def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
        self.model, self.width, self.height = model, width, height
        self._surface: Surface | None = None
        self._finalizer: weakref.finalize | None = None

    @contextmanager
    def bound(self) -> Iterator[mujoco.MjrContext]:
        """Yield the buffers to draw into, with their context current.

        Raises:
            GraphicsError: OpenGL is missing, or was used before this process was forked.
        """
        with _thread_lent():
            if self._surface is None or _inherited_driver:
                self._surface = Surface.acquire(self.model)
                self._finalizer = weakref.finalize(self, self._surface.release)
                self._finalizer.atexit = False
            self._surface.bind(self.width, self.height)
            yield self._surface.buffers

    def close(self) -> None:
        """Free the buffers; repeated calls have no effect, and drawing again creates new buffers."""
        if self._finalizer is not None:
            self._finalizer()
        self._surface = self._finalizer = None


class Picture:
    """Colour images of a model, without its collision geometry.

    Args:
        model: MuJoCo model.
        width: Image width [pixels].
        height: Image height [pixels].
    """

    def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
        self._drawing = Drawing(model, width, height)
        self._scene = mujoco.MjvScene(model, maxgeom=10_000)
        self._option = mujoco.MjvOption()
        self._option.geomgroup[0] = 0
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED

    def draw(self, data: mujoco.MjData, camera: str) -> np.ndarray:
        """Draw the current state.

        Returns:
            Image of shape (height, width, 3), uint8; row 0 is the top.

        Raises:
            KeyError: The model has no such camera; the message lists its cameras.
            GraphicsError: OpenGL is missing, or was used before this process was forked.
        """
        drawing, scene = self._drawing, self._scene
        self._view.fixedcamid = drawing.model.camera(camera).id
        category = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(drawing.model, data, self._option, None, self._view, category, scene)
        viewport = mujoco.MjrRect(0, 0, drawing.width, drawing.height)
        image = np.empty((drawing.height, drawing.width, 3), np.uint8)
        with drawing.bound() as buffers:
            mujoco.mjr_render(viewport, scene, buffers)
            mujoco.mjr_readPixels(image, None, viewport, buffers)
        return np.ascontiguousarray(np.flipud(image))

    def close(self) -> None:
        """Free the buffers; repeated calls have no effect."""
        self._drawing.close()


@contextmanager
def _thread_lent() -> Iterator[None]:
    """Restore, at exit, the EGL context that another library had made current in this thread."""
    egl: Any = sys.modules.get("OpenGL.EGL") if _backend() == "egl" else None
    before = None
    if egl is not None and (context := egl.eglGetCurrentContext()):
        surfaces = egl.eglGetCurrentSurface(egl.EGL_DRAW), egl.eglGetCurrentSurface(egl.EGL_READ)
        before = egl.eglGetCurrentDisplay(), *surfaces, context
    try:
        yield
    finally:
        if before is not None:
            egl.eglMakeCurrent(*before)


def _backend() -> str:
    """Return the name of the backend set by MUJOCO_GL; defaults to EGL, on macOS to CGL."""
    return os.environ.get("MUJOCO_GL", "").lower().strip() or ("cgl" if sys.platform == "darwin" else "egl")


def _make_context() -> Any:
    if _backend() not in LIBRARIES:
        raise ValueError("no backend of this name")
    context_class = import_module(f"mujoco.{_backend()}").GLContext
    context = context_class.__new__(context_class)
    context._context = None  # the destructor reads it even if the constructor fails
    context.__init__(64, 64)
    return context


def _explain(error: Exception) -> str:
    """Return one line that names what is missing or which variable is wrong, and the remedy."""
    backend = _backend()
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    others = " or ".join(name for name in ("egl", "osmesa") if name != backend)
    platform, device = (os.environ.get(name) for name in ("PYOPENGL_PLATFORM", "MUJOCO_EGL_DEVICE_ID"))
    needs, remedy = LIBRARIES.get(backend), f"install it, or set MUJOCO_GL to {others}"
    if backend not in LIBRARIES:
        needs, remedy = "a backend", f"set MUJOCO_GL to {others}"
    elif platform and backend in ("egl", "osmesa") and platform.lower() != backend:
        needs, remedy = f"PYOPENGL_PLATFORM unset, and it is {platform!r}", "unset it"
    elif device is not None and backend == "egl" and (numbers := _egl_devices()):
        needs = f"an EGL device ({numbers}), and MUJOCO_EGL_DEVICE_ID is {device!r}"
        remedy = f"unset or change that, or set MUJOCO_GL to {others}"
    return f"drawing by OpenGL needs {needs}; it fails with MUJOCO_GL={backend} ({reason}): {remedy}"


def _egl_devices() -> str:
    """Return the numbers of the EGL devices, comma-separated; empty if they cannot be queried."""
    try:
        count = len(import_module("mujoco.egl").EGL.eglQueryDevicesEXT())
    except Exception:  # the type depends on the library
        return ""
    return ", ".join(map(str, range(count)))
