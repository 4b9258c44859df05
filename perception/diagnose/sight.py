"""What cameras see of the puck in recorded episodes: the clouds of an agent, and the surface that there is to see."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import gymnasium
import mujoco
import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from envs.demonstrations import Trajectory
from envs.push.placement import PUCK_BODY
from envs.push.playback import play_states
from perception.cameras import camera_to_world, find_id
from perception.noise import Noise
from perception.observation import PointCloudObservation
from perception.point_cloud import back_project, transform
from perception.rendering import make_renderer
from perception.rendering.geoms import alone

SIZE = 128  # width and height of the images from which clouds are computed, as in the observation [pixels]
WIDER = 3  # width and height of the image that shows the puck beyond the border too, per those of the image


@dataclass(frozen=True)
class Clouds:
    """What an agent observes in every frame.

    Attributes:
        observations: Rows [p_i − E, p_i − G], xy, shape (frames, points, 4) [m].
        points: Points p_i, world frame, shape (frames, points, 3) [m].
        visible: Whether the frame shows the puck, shape (frames,); the others repeat what was seen last.
    """

    observations: Float32[np.ndarray, "frames points 4"]
    points: Float[np.ndarray, "frames points 3"]
    visible: Bool[np.ndarray, " frames"]


@dataclass(frozen=True)
class Surface:
    """The surface of the puck that faces a camera, with and without what is in front of it.

    Attributes:
        seen: Pixels that see the puck, shape (frames,).
        there: Pixels that would see it if there were nothing else and the image had no border, shape (frames,).
        points: Points of these pixels for every frame, world frame, shape (there, 3) each [m].
    """

    seen: Int[np.ndarray, " frames"]
    there: Int[np.ndarray, " frames"]
    points: list[Float[np.ndarray, "_ 3"]]


class Playback(gymnasium.Wrapper):
    """Recorded episodes in place of the simulation.

    A reset with the option "trajectory" goes to its first frame, and every step, whatever its action, to the next one.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Go to the first frame of ``options["trajectory"]``."""
        assert options is not None
        self._frames = play_states(self.env, options["trajectory"])
        return next(self._frames), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Go to the next frame."""
        return next(self._frames), 0.0, False, False, {}


def observe(
    base: gymnasium.Env,
    trajectories: Sequence[Trajectory],
    cameras: Sequence[str],
    renderer: str,
    noise: Noise | None = None,
    seed: int = 0,
) -> Clouds:
    """Observe recorded episodes as an agent would.

    Args:
        base: `PushEnv` of the slot task.
        trajectories: Episodes with simulator states.
        cameras: Cameras whose clouds are fused.
        renderer: Key of `perception.rendering.RENDERERS`.
        noise: Noise of the cameras.
        seed: Seed of the noise in the first episode; episode i has `seed` + i.

    Raises:
        ValueError: Unknown camera or renderer.
    """
    observations, points, visible = [], [], []
    wrapped = PointCloudObservation(Playback(base), cameras, renderer=renderer, width=SIZE, height=SIZE, noise=noise)
    with closing(wrapped) as env:
        for number, trajectory in enumerate(trajectories):
            for step in range(trajectory.horizon + 1):
                if step == 0:
                    cloud, info = env.reset(seed=seed + number, options={"trajectory": trajectory})
                else:
                    cloud, *_, info = env.step(None)
                observations.append(cloud)
                points.append(env.points_world)
                visible.append(info["puck_visible"])
    return Clouds(np.stack(observations), np.stack(points), np.array(visible))


def survey(base: gymnasium.Env, trajectories: Sequence[Trajectory], camera: str, renderer: str) -> Surface:
    """Compare what a camera sees of the puck in recorded episodes with what there is to see.

    Args:
        base: `PushEnv` of the slot task.
        trajectories: Episodes with simulator states.
        camera: Name of the camera.
        renderer: Key of `perception.rendering.RENDERERS`.

    Raises:
        ValueError: Unknown camera or renderer.
    """
    model, data = base.unwrapped.model, base.unwrapped.data  # type: ignore[attr-defined]
    seen, points = [], []
    with (
        closing(make_renderer(renderer, model, camera, PUCK_BODY, SIZE, SIZE)) as actual,
        closing(make_renderer(renderer, widened(model, camera), camera, PUCK_BODY, WIDER * SIZE, WIDER * SIZE)) as free,
    ):
        for trajectory in trajectories:
            for _ in play_states(base, trajectory):
                seen.append(actual.render(data)[1].sum())
                facing = back_project(*free.render(data), free.intrinsics)
                points.append(transform(facing, camera_to_world(model, data, camera)))
    return Surface(np.array(seen), np.array([len(facing) for facing in points]), points)


def widened(model: mujoco.MjModel, camera: str) -> mujoco.MjModel:
    """Return a copy of the model that draws the puck only, and whose camera has a `WIDER` view.

    The focal length in pixels is the same for images that are as much wider, so that the pixels are the same too.
    """
    copied = alone(model, PUCK_BODY)
    index = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
    half = np.deg2rad(model.cam_fovy[index]) / 2
    copied.cam_fovy[index] = 2 * np.rad2deg(np.arctan(WIDER * np.tan(half)))
    return copied
