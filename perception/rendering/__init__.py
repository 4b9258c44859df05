"""Renderers of depth and mask of an object: one interface, two implementations that agree on the object's pixels.

- gl: OpenGL, the reference; depth of the whole image.
- ray: ray casting of the pixels that can see the object, primitives and meshes alike; needs no OpenGL and is faster,
  by much for small objects and simple geometry.

Both see geoms only; sites, skins and flexes are not drawn. Colours of a whole image are drawn by
`perception.rendering.colour`.
"""

from typing import Protocol, runtime_checkable

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import mujoco
import numpy as np
from jaxtyping import Bool, Float32

from perception.cameras import Intrinsics
from perception.rendering.gl import GLRenderer
from perception.rendering.ray import RayRenderer


@runtime_checkable
class Renderer(Protocol):
    """Renderer of the depth and the mask of one object, a body with those below it, seen by one camera.

    Attributes:
        intrinsics: Projection of the images.
    """

    intrinsics: Intrinsics

    def __init__(self, model: mujoco.MjModel, camera: str, body: str, width: int, height: int) -> None: ...

    def render(
        self, data: mujoco.MjData
    ) -> tuple[Float32[np.ndarray, "height width"], Bool[np.ndarray, "height width"]]:
        """Render the current state; row 0 is the top of the image.

        Returns:
            depth: Distance along the optical axis (not along the ray) [m]. Valid on the mask; elsewhere it may be 0.
            mask: Pixels whose centre sees a drawn geom of the object.
        """

    def close(self) -> None:
        """Release all resources; repeated calls have no effect."""


RENDERERS: dict[str, type[Renderer]] = {"gl": GLRenderer, "ray": RayRenderer}


def make_renderer(
    name: str, model: mujoco.MjModel, camera: str, body: str = "puck_main", width: int = 64, height: int = 64
) -> Renderer:
    """Create the renderer of one camera.

    Args:
        name: Key of ``RENDERERS``.
        model: MuJoCo model; a rebuilt model needs a new renderer.
        camera: Name of the camera.
        body: Name of the body whose pixels, and those of the bodies below it, are the mask; the suffix "_main" of
            robosuite may be left out.
        width: Image width [pixels].
        height: Image height [pixels].

    Raises:
        ValueError: Unknown renderer, camera or body; the message lists the known ones.
    """
    if name not in RENDERERS:
        raise ValueError(f"unknown renderer {name!r}; known: {', '.join(RENDERERS)}")
    return RENDERERS[name](model, camera, body, width, height)
