"""Import of MuJoCo and robosuite on machines without OpenGL or OpenCV.

Both packages import OpenGL and OpenCV for images and windows. Simulation needs neither, so on a machine without them
only rendering is unavailable. This module must be imported before every other module of the simulation, because it
changes how they are imported.
"""

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

# Tested versions, lower bounds included; the same ranges are in pyproject.toml.
MUJOCO, ROBOSUITE = (">=3.3", "<3.10"), (">=1.5.1", "<1.6")


def check_versions(mujoco: str, robosuite: str) -> None:
    """Check that the versions of MuJoCo and robosuite are compatible.

    Raises:
        ImportError: A version is outside its range; the message names both versions and both ranges.
    """
    if not (_within(mujoco, *MUJOCO) and _within(robosuite, *ROBOSUITE)):
        wanted = f"mujoco{','.join(MUJOCO)}", f"robosuite{','.join(ROBOSUITE)}"
        raise ImportError(
            f"robosuite {robosuite} and MuJoCo {mujoco} do not run together here; "
            f"it takes {' and '.join(wanted)}: pip install {' '.join(map(repr, wanted))}"
        )


def _within(found: str, lower: str, upper: str) -> bool:
    low, number, high = (tuple(map(int, re.findall(r"\d+", text)[:3])) for text in (lower, found, upper))
    return low <= number < high


class _Missing(ModuleType):
    """Placeholder of a module that cannot be imported; raises ImportError when one of its attributes is read."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name)
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise ImportError(f"{self.__name__}.{name} is not there: {self._error}")


@contextmanager
def _own_choice_of_backend() -> Iterator[None]:
    """Restore the OpenGL environment variables that the imports change, so that later errors name the user's choice.

    MuJoCo sets PYOPENGL_PLATFORM. robosuite sets MUJOCO_GL and asserts that CUDA_VISIBLE_DEVICES, which may hold names
    in place of numbers, contains MUJOCO_EGL_DEVICE_ID.
    """
    chosen = {name: os.environ.get(name) for name in ("MUJOCO_GL", "MUJOCO_EGL_DEVICE_ID", "PYOPENGL_PLATFORM")}
    os.environ.pop("MUJOCO_EGL_DEVICE_ID", None)
    try:
        yield
    finally:
        for name, value in chosen.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


def _import_mujoco() -> None:
    """Import MuJoCo, without its OpenGL context if that fails; the type of error depends on the backend."""
    try:
        import_module("mujoco")
    except Exception:
        os.environ["MUJOCO_GL"] = "disable"
        import_module("mujoco")


def _import_robosuite() -> None:
    """Import robosuite, without OpenCV and MuJoCo's viewer if they fail; only robosuite's own windows use them."""
    missing = {}
    for name in ("cv2", "mujoco.viewer"):
        try:
            import_module(name)
        except Exception as error:
            missing[name] = sys.modules[name] = _Missing(name, error)
    try:
        import_module("robosuite")
    finally:
        for name in missing:  # other packages may handle the missing module differently
            del sys.modules[name]


def _let_numba_cache() -> None:
    """Set a temporary cache directory for numba if it can write neither beside a module nor in the user's cache.

    numba raises an error in that case.
    """
    beside = [Path(find_spec(name).origin).parent for name in ("robosuite", "envs")]  # type: ignore[union-attr,arg-type]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '')}/.cache") / "numba"
    while not cache.exists():
        cache = cache.parent
    writable = os.access(cache, os.W_OK) or all(os.access(place, os.W_OK) for place in beside)
    if not writable and "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = directory = tempfile.mkdtemp(prefix="numba-")
        if "numba" in sys.modules:  # already imported, for example by PyTorch Geometric: it has read the variable
            sys.modules["numba"].config.CACHE_DIR = directory
        atexit.register(shutil.rmtree, directory, ignore_errors=True)


check_versions(version("mujoco"), version("robosuite"))
_let_numba_cache()
with _own_choice_of_backend():
    _import_mujoco()
    _import_robosuite()
