"""Gymnasium wrapper that replaces the state observation by a point cloud of the puck."""

from collections.abc import Sequence
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32

from perception.cameras import camera_to_world
from perception.point_cloud import back_project, crop, open3d, sample_points, transform
from perception.rendering import Renderer, make_renderer

# Lower and upper corner of the crop box, for robosuite's table surface at 0.8 m; world frame [m].
WORKSPACE = ((-0.6, -0.8, 0.75), (0.6, 0.8, 1.3))


class PointCloudObservation(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Observe points of the puck relative to the end effector and to the goal.

    Row i is [p_i − E, p_i − G], each in the plane (x, y) of the world frame [m]: p_i is a point on the visible surface
    of the puck, E the end effector, G the goal. The depth image of every camera is back-projected; the clouds are
    fused, cropped to the workspace and reduced by farthest point sampling. Points that are not finite are ignored.

    A frame without a point of the puck is not an error. It repeats the last points seen since the reset. Before the
    first visible frame, all points are at the end effector, since it is the arm that hides the puck; points at the goal
    would look like a success. ``info["puck_visible"]`` is False for such a frame. The first step of an episode repeats
    this flag of the first frame in ``info["reset_info"]``, for learners that receive the ``info`` of steps only.

    The unwrapped environment must have the attributes ``model``, ``data``, ``end_effector_position`` and
    ``goal_position``. If it rebuilds its model, the renderers are rebuilt too.

    Args:
        env: Environment to wrap.
        cameras: Names of the cameras to fuse.
        num_points: Number of points in an observation.
        renderer: Key of `perception.rendering.RENDERERS`.
        width: Image width [pixels].
        height: Image height [pixels].
        body: Name of the puck's body.
        workspace: Lower and upper corner of the crop box, world frame [m].

    Attributes:
        points_world: Points of the last observation, world frame, shape (num_points, 3) [m].
        hidden_frames: Number of frames without a point of the puck since construction.

    Raises:
        ValueError: Unknown renderer, camera or body, no camera, fewer than 1 point, or invalid workspace.
        ImportError: Open3D is missing.
    """

    points_world: Float[np.ndarray, "num_points 3"]

    def __init__(
        self,
        env: gymnasium.Env,
        cameras: Sequence[str] = ("overhead",),
        num_points: int = 20,
        renderer: str = "ray",
        width: int = 128,
        height: int = 128,
        body: str = "puck_main",
        workspace: Sequence[Sequence[float]] = WORKSPACE,
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(  # as lists, which JSON preserves
            self,
            cameras=list(cameras),
            num_points=num_points,
            renderer=renderer,
            width=width,
            height=height,
            body=body,
            workspace=np.asarray(workspace).tolist(),
        )
        gymnasium.Wrapper.__init__(self, env)
        if isinstance(cameras, str) or not cameras:
            raise ValueError(f"cameras is {cameras!r}; give a sequence of at least one camera name")
        if not (isinstance(num_points, int | np.integer) and num_points >= 1):
            raise ValueError(f"num_points is {num_points!r}; give a whole number of at least 1")
        box = np.asarray(workspace, dtype=float)
        if box.shape != (2, 3) or not (box[0] < box[1]).all():
            raise ValueError(f"workspace is {workspace!r}; give a lower and an upper corner, (x, y, z) each")
        open3d()  # a missing library should raise here, not in the first frame that needs sampling
        self._cameras = tuple(cameras)
        self._renderer_settings: dict[str, Any] = {"body": body, "width": width, "height": height}
        self._renderer = renderer
        self._workspace = box
        self._num_points = int(num_points)
        self._renderers: dict[str, Renderer] = {}
        self._model: Any = None
        self._seen = False
        self._reset_info: dict[str, bool] | None = None
        self.points_world = np.zeros((num_points, 3))
        self.hidden_frames = 0
        self.observation_space = spaces.Box(-np.inf, np.inf, (num_points, 4), np.float32)
        self._make_renderers()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32[np.ndarray, "num_points 4"], dict[str, Any]]:
        """Reset the environment and discard the points of the previous episode."""
        _, info = self.env.reset(seed=seed, options=options)
        self._seen = False
        observation = self._observe(info)
        self._reset_info = {"puck_visible": info["puck_visible"]}
        return observation, info

    def step(self, action: Any) -> tuple[Float32[np.ndarray, "num_points 4"], Any, bool, bool, dict[str, Any]]:
        """Step the environment and observe the puck."""
        _, reward, terminated, truncated, info = self.env.step(action)
        if self._reset_info is not None:
            info["reset_info"], self._reset_info = self._reset_info, None
        return self._observe(info), reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """Return what the next observation depends on besides the simulation, as plain data for a checkpoint."""
        return {
            "points": self.points_world.tolist(),
            "seen": self._seen,
            "reset_info": self._reset_info,
            "hidden_frames": self.hidden_frames,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state`."""
        self.points_world = np.array(state["points"])
        self._seen, self.hidden_frames, self._reset_info = state["seen"], state["hidden_frames"], state["reset_info"]

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the renderers; a copy creates its own at the next observation."""
        return self.__dict__ | {"_renderers": {}, "_model": None}

    def close(self) -> None:
        """Close the renderers and the environment; repeated calls have no effect."""
        self._close_renderers()
        super().close()

    def _observe(self, info: dict[str, Any]) -> Float32[np.ndarray, "num_points 4"]:
        if self.env.unwrapped.model is not self._model:  # type: ignore[attr-defined]
            self._make_renderers()
        points = self._puck_points()
        visible = bool(np.isfinite(points).all(axis=-1).any())
        end_effector, goal = self._anchors()
        if visible:
            self.points_world = sample_points(points, self._num_points)
            self._seen = True
        else:
            self.hidden_frames += 1
            if not self._seen:
                self.points_world = np.tile(end_effector, (self._num_points, 1))
        info["puck_visible"] = visible
        xy = self.points_world[:, :2]
        return np.concatenate([xy - end_effector[:2], xy - goal[:2]], axis=-1).astype(np.float32)

    def _anchors(self) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, " goal"]]:
        base: Any = self.env.unwrapped
        return np.asarray(base.end_effector_position), np.asarray(base.goal_position)

    def _puck_points(self) -> Float[np.ndarray, "points 3"]:
        data = self.env.unwrapped.data  # type: ignore[attr-defined]
        mujoco.mj_camlight(self._model, data)  # the environment may not update the camera poses
        clouds = []
        for camera, renderer in self._renderers.items():
            points = back_project(*renderer.render(data), renderer.intrinsics)
            clouds.append(transform(points, camera_to_world(self._model, data, camera)))
        return crop(np.concatenate(clouds), self._workspace)

    def _make_renderers(self) -> None:
        self._close_renderers()
        self._model = self.env.unwrapped.model  # type: ignore[attr-defined]
        self._renderers = {
            camera: make_renderer(self._renderer, self._model, camera, **self._renderer_settings)
            for camera in self._cameras
        }

    def _close_renderers(self) -> None:
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers = {}
        self._model = None
