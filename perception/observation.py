"""Gymnasium wrapper that replaces the state observation by point clouds of objects."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32

from perception.cameras import camera_to_world
from perception.noise import Noise, NoiseSource, checked_noise
from perception.point_cloud import back_project, crop, open3d, sample_points, transform
from perception.rendering import Renderer, make_renderer
from perception.simulation import Anchor, anchor_position, check_anchor, simulation

# Lower and upper corner of the crop box, for robosuite's table surface at 0.8 m; world frame [m].
WORKSPACE = ((-0.6, -0.8, 0.75), (0.6, 0.8, 1.3))

# Defaults without ``objects``, for the puck of this project's tasks, and with them.
PUCK: dict[str, Any] = {
    "objects": ("puck_main",),
    "relative_to": ("end_effector_position", "goal_position"),
    "plane": True,
    "workspace": WORKSPACE,
}
OBJECTS: dict[str, Any] = {"relative_to": ("world",), "plane": False, "workspace": ((-np.inf,) * 3, (np.inf,) * 3)}


class PointCloudObservation(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Observe points on the visible surface of objects, relative to given positions.

    Row i is [p_i − a_1, p_i − a_2, …] in the axes of the world frame [m]: p_i is a point on the visible surface of an
    object, a_k a position of ``relative_to``. The depth image of every camera is back-projected; the clouds are fused,
    cropped to the workspace and reduced by farthest point sampling. Points that are not finite are ignored. Without
    ``objects``, the defaults are those of the puck of this project's tasks (``PUCK``): [p_i − E, p_i − G] with the end
    effector E and the goal G, xy.

    Several objects have ``num_points`` rows each, one object after another. Each row then begins with the one-hot label
    of its object, so that an encoder which ignores the order of the rows can tell the objects apart.

    A frame without a point of an object is not an error. It repeats the last points of this object seen since the
    reset. Before the first visible frame, they are all at the first position of ``relative_to``: of the puck, at the
    end effector, since it is the arm that hides the puck; points at the goal would look like a success.
    ``info["puck_visible"]`` is False for a frame that does not show all objects. The first step of an episode repeats
    this flag of the first frame in ``info["reset_info"]``, for learners that receive the ``info`` of steps only.

    The environment is any with a MuJoCo simulation (`perception.simulation`). If it rebuilds its model, the renderers
    are rebuilt too. Poses are those in its data; robosuite and Gymnasium-Robotics leave them one physics substep behind
    the joint positions.

    Args:
        env: Environment to wrap.
        cameras: Names of the cameras to fuse; they may move.
        num_points: Number of points of each object.
        renderer: Key of `perception.rendering.RENDERERS`.
        width: Image width [pixels].
        height: Image height [pixels].
        objects: Names of bodies, the bodies below them included; the suffix "_main" of robosuite may be left out.
        relative_to: Positions: names of bodies, of sites, or of attributes of the unwrapped environment, or functions
            of the environment; by default the origin of the world frame. `shaping.CloudGoals(num_points, dims)` fits
            one object relative to two positions, of which the last is the goal.
        plane: Whether the rows hold x and y only; by default x, y and z.
        workspace: Lower and upper corner of the crop box, world frame [m]; by default nothing is cropped.
        noise: Noise of the cameras: a `Noise`, or a mapping of its settings. It is drawn from a generator of its own,
            which a reset with a seed seeds too.

    Attributes:
        points_world: Points of the last observation, world frame, shape (objects · num_points, 3) [m].
        hidden_frames: Number of frames that did not show all objects since construction.

    Raises:
        ValueError: Unknown renderer, camera, body or position, no camera or object, an object named twice, fewer than 1
            point, invalid workspace or noise, or an environment without a MuJoCo simulation.
        ImportError: Open3D is missing.
    """

    points_world: Float[np.ndarray, "rows 3"]

    def __init__(
        self,
        env: gymnasium.Env,
        cameras: Sequence[str] = ("overhead",),
        num_points: int = 20,
        renderer: str = "ray",
        width: int = 128,
        height: int = 128,
        objects: Sequence[str] | None = None,
        relative_to: Sequence[Anchor] | None = None,
        plane: bool | None = None,
        workspace: Sequence[Sequence[float]] | None = None,
        noise: Noise | Mapping[str, Any] | None = None,
    ) -> None:
        noise = None if noise is None else checked_noise(noise)
        gymnasium.utils.RecordConstructorArgs.__init__(  # as lists, which JSON preserves
            self,
            cameras=list(cameras),
            num_points=num_points,
            renderer=renderer,
            width=width,
            height=height,
            objects=objects and list(objects),
            relative_to=relative_to and list(relative_to),
            plane=plane,
            workspace=None if workspace is None else np.asarray(workspace).tolist(),
            noise=None if noise is None else asdict(noise),
        )
        gymnasium.Wrapper.__init__(self, env)
        given = {"objects": objects, "relative_to": relative_to, "plane": plane, "workspace": workspace}
        defaults = PUCK if objects is None else OBJECTS
        chosen = defaults | {name: value for name, value in given.items() if value is not None}
        named = {"cameras": (cameras, "camera name"), "objects": (chosen["objects"], "body")}
        for name, (values, noun) in (named | {"relative_to": (chosen["relative_to"], "position")}).items():
            if isinstance(values, str) or not values or len(set(values)) < len(values):
                raise ValueError(f"{name} is {values!r}; give a sequence of at least one {noun}, each of them once")
        if not (isinstance(num_points, int | np.integer) and num_points >= 1):
            raise ValueError(f"num_points is {num_points!r}; give a whole number of at least 1")
        box = np.asarray(chosen["workspace"], dtype=float)
        if box.shape != (2, 3) or not (box[0] < box[1]).all():
            raise ValueError(f"workspace is {chosen['workspace']!r}; give a lower and an upper corner, (x, y, z) each")
        open3d()  # a missing library should raise here, not in the first frame that needs sampling
        self._cameras = tuple(cameras)
        self._image_size = {"width": width, "height": height}
        self._renderer = renderer
        self._objects = tuple(chosen["objects"])
        self._anchors = tuple(chosen["relative_to"])
        self._dims = 2 if chosen["plane"] else 3
        self._workspace = box
        self._num_points = int(num_points)
        self._noise = None if noise is None else NoiseSource(noise, self._cameras)
        self._renderers: dict[tuple[str, str], Renderer] = {}
        self._model: Any = None
        self._seen = np.zeros(len(self._objects), bool)
        self._reset_info: dict[str, bool] | None = None
        self.points_world = np.zeros((len(self._objects) * self._num_points, 3))
        self.hidden_frames = 0
        labels = len(self._objects) if len(self._objects) > 1 else 0
        self._labels = np.eye(len(self._objects), labels).repeat(self._num_points, axis=0)
        shape = (len(self._labels), labels + self._dims * len(self._anchors))
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        for anchor in self._anchors:
            check_anchor(env, anchor)
        self._make_renderers()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32[np.ndarray, "rows columns"], dict[str, Any]]:
        """Reset the environment and discard the points of the previous episode."""
        _, info = self.env.reset(seed=seed, options=options)
        self._seen[:] = False
        if self._noise is not None:
            self._noise.reset(seed)
        observation = self._observe(info)
        self._reset_info = {"puck_visible": info["puck_visible"]}
        return observation, info

    def step(self, action: Any) -> tuple[Float32[np.ndarray, "rows columns"], Any, bool, bool, dict[str, Any]]:
        """Step the environment and observe the objects."""
        _, reward, terminated, truncated, info = self.env.step(action)
        if self._reset_info is not None:
            info["reset_info"], self._reset_info = self._reset_info, None
        return self._observe(info), reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """Return what the next observation depends on besides the simulation, as plain data for a checkpoint."""
        return {
            "points": self.points_world.tolist(),
            "seen": self._seen.tolist(),
            "reset_info": self._reset_info,
            "hidden_frames": self.hidden_frames,
        } | ({} if self._noise is None else {"noise": self._noise.get_state()})

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state`."""
        self.points_world, self._seen[:] = np.array(state["points"]), state["seen"]
        self.hidden_frames, self._reset_info = state["hidden_frames"], state["reset_info"]
        if self._noise is not None:
            self._noise.set_state(state["noise"])

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the renderers; a copy creates its own at the next observation."""
        return self.__dict__ | {"_renderers": {}, "_model": None}

    def close(self) -> None:
        """Close the renderers and the environment; repeated calls have no effect."""
        self._close_renderers()
        super().close()

    def _observe(self, info: dict[str, Any]) -> Float32[np.ndarray, "rows columns"]:
        model, data = simulation(self.env)
        if model is not self._model:
            self._make_renderers()
        mujoco.mj_camlight(model, data)  # the environment may not update the camera poses
        anchors = [anchor_position(self.env, anchor, self._dims) for anchor in self._anchors]
        clouds = self.points_world.reshape(len(self._objects), self._num_points, 3).copy()
        visible = np.zeros(len(self._objects), bool)
        for index, name in enumerate(self._objects):
            points = self._object_points(name)
            visible[index] = np.isfinite(points).all(axis=-1).any()
            if visible[index]:
                clouds[index] = sample_points(points, self._num_points)
            elif not self._seen[index]:
                clouds[index] = 0.0
                clouds[index, :, : len(anchors[0])] = anchors[0]
        self._seen |= visible
        self.points_world = clouds.reshape(-1, 3)
        info["puck_visible"] = bool(visible.all())
        self.hidden_frames += not info["puck_visible"]
        rows = self.points_world[:, : self._dims]
        columns = [rows - anchor[: self._dims] for anchor in anchors]
        return np.concatenate([self._labels, *columns], axis=-1).astype(np.float32)

    def _object_points(self, name: str) -> Float[np.ndarray, "points 3"]:
        model, data = simulation(self.env)
        clouds = []
        for camera in self._cameras:
            renderer = self._renderers[name, camera]
            (depth, mask), pose = renderer.render(data), camera_to_world(model, data, camera)
            if self._noise is not None:
                depth, pose = self._noise.depth(depth, mask), self._noise.pose(camera, pose)
            clouds.append(transform(back_project(depth, mask, renderer.intrinsics), pose))
        return crop(np.concatenate(clouds), self._workspace)

    def _make_renderers(self) -> None:
        self._close_renderers()
        self._model, _ = simulation(self.env)
        self._renderers = {
            (name, camera): make_renderer(self._renderer, self._model, camera, name, **self._image_size)
            for name in self._objects
            for camera in self._cameras
        }

    def _close_renderers(self) -> None:
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers = {}
        self._model = None
