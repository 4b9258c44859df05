"""Gymnasium wrapper that replaces the state observation by an image with colours and depth."""

from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from jaxtyping import Float32

from perception.rendering.colour import ColourRenderer
from perception.simulation import simulation


class RGBDObservation(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Observe the image of a camera: float32 (4, height, width), row 0 at the top.

    Channels 0 to 2 are red, green and blue in [0, 1]; channel 3 is the distance along the optical axis [m], from 0 to
    `max_depth`, where everything beyond is cut. The camera frame is that of `perception.cameras`. An image holds no
    position relative to a goal, so there is no goal to subtract from it, and no velocity.

    The environment is any with a MuJoCo simulation (`perception.simulation`); if it rebuilds its model, the renderer is
    rebuilt too. An image is a function of the simulation's state: the wrapper has no state of its own that a checkpoint
    would have to store.

    Args:
        env: Environment to wrap.
        camera: Name of the camera, which may move.
        width: Image width [pixels].
        height: Image height [pixels].
        max_depth: Largest depth [m].

    Raises:
        ValueError: Unknown camera, invalid image size or depth, or an environment without a MuJoCo simulation.
    """

    def __init__(
        self, env: gymnasium.Env, camera: str = "overhead", width: int = 48, height: int = 48, max_depth: float = 2.0
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, camera=camera, width=width, height=height, max_depth=max_depth
        )
        gymnasium.Wrapper.__init__(self, env)
        if not 0 < max_depth < np.inf:
            raise ValueError(f"max_depth is {max_depth!r}; give a finite number of metres above 0")
        self._arguments: dict[str, Any] = {"camera": camera, "width": width, "height": height}
        self._max_depth = max_depth
        self._renderer: ColourRenderer | None = None
        self._model: Any = None
        self._make_renderer()
        high = np.ones((4, height, width), np.float32)
        high[3] = max_depth
        self.observation_space = spaces.Box(np.zeros_like(high), high)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32[np.ndarray, "4 height width"], dict[str, Any]]:
        """Reset the environment and observe it."""
        _, info = self.env.reset(seed=seed, options=options)
        return self.observe(), info

    def step(self, action: Any) -> tuple[Float32[np.ndarray, "4 height width"], Any, bool, bool, dict[str, Any]]:
        """Step the environment and observe it."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self.observe(), reward, terminated, truncated, info

    def observe(self) -> Float32[np.ndarray, "4 height width"]:
        """Return the image of the current state of the simulation.

        Raises:
            GraphicsError: OpenGL is missing, or was used before this process was forked.
        """
        model, data = simulation(self.env)
        if model is not self._model or self._renderer is None:
            self._make_renderer()
        mujoco.mj_camlight(model, data)  # the environment may not update the poses of cameras and lights
        colour, depth = self._renderer.render(data)  # type: ignore[union-attr]
        colours = np.moveaxis(colour.astype(np.float32) / 255, -1, 0)
        return np.concatenate([colours, depth[None].clip(0.0, self._max_depth)])

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the renderer; a copy creates its own at the next observation."""
        return self.__dict__ | {"_renderer": None, "_model": None}

    def close(self) -> None:
        """Close the renderer and the environment; repeated calls have no effect."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = self._model = None
        super().close()

    def _make_renderer(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
        self._model, _ = simulation(self.env)
        self._renderer = ColourRenderer(self._model, **self._arguments)
