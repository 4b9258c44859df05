"""The slot task with its cameras, set to given poses or replaying demonstrations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import mujoco
import numpy as np
from jaxtyping import Bool, Float, Float32, UInt8

from envs.demonstrations import Trajectory
from envs.push.env import PushEnv
from envs.push.geometry import PUCK_HALF_HEIGHT, TABLE_HEIGHT, WORKSPACE
from envs.push.placement import puck_addresses
from envs.push.playback import play_actions, set_simulator_state
from perception.cameras import Intrinsics, camera_to_world
from perception.observation import PointCloudObservation
from perception.point_cloud import back_project, transform
from perception.rendering import make_renderer

IMAGE_SIZE = 480  # size of the RGB and depth images of the whole scene [pixels]
CLOUD_SIZE = 128  # size of the images from which clouds are computed, as in the observation [pixels]
SAME_START = 1e-3  # largest distance between the start drawn from the recorded seed and the recorded start [m]
FAR = 3.0  # points at a larger depth belong to the room and are ignored [m]


@dataclass(frozen=True)
class View:
    """Images and points of one camera; row 0 is the top of every image.

    Attributes:
        title: Description of state and camera.
        rgb: Colour image, shape (height, width, 3).
        depth: Distance along the optical axis, for every pixel of `rgb`, shape (height, width) [m].
        mask: Pixels of the puck, from the renderer of the agent's clouds, shape (rows, columns).
        cloud: Back-projection of the mask, world frame, shape (cloud, 3) [m].
        points: Points that the agent observes, fused from all cameras, world frame, shape (num_points, 3) [m].
        pixels: Positions of the points in `rgb` (column, row), shape (num_points, 2) [pixels].
    """

    title: str
    rgb: UInt8[np.ndarray, "height width 3"]
    depth: Float32[np.ndarray, "height width"]
    mask: Bool[np.ndarray, "rows columns"]
    cloud: Float[np.ndarray, "cloud 3"]
    points: Float[np.ndarray, "num_points 3"]
    pixels: Float[np.ndarray, "num_points 2"]


def project(
    points: Float[np.ndarray, "points 3"], pose: Float[np.ndarray, "4 4"], camera: Intrinsics
) -> Float[np.ndarray, "points 2"]:
    """Project points into an image, the inverse of `back_project` and `transform`.

    (u, v) = f · (x, y) / z + (c_x, c_y) with (x, y, z) = Rᵀ (p − t); the centre of pixel (column i, row j) is at
    (i + 0.5, j + 0.5).

    Args:
        points: Points, world frame, shape (points, 3) [m].
        pose: Pose of the camera, ``camera_to_world``, shape (4, 4).
        camera: Projection of the image.

    Returns:
        Positions (u, v) in the image, shape (points, 2) [pixels].
    """
    x, y, z = ((points - pose[:3, 3]) @ pose[:3, :3]).T
    return camera.focal * np.stack([x, y], axis=-1) / z[:, None] + camera.center


class Posed(gymnasium.Wrapper):
    """Wrapper with reset options for the full pose of the puck and for a recorded simulator state.

    The options are "puck_pose", position [m] and quaternion (w, x, y, z), world frame, and "simulator", a state as in
    `envs.push.playback`.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment, then set the simulator state or the pose of the puck if given."""
        options = dict(options or {})
        pose, state = options.pop("puck_pose", None), options.pop("simulator", None)
        result = self.env.reset(seed=seed, options=options)
        if state is not None:
            set_simulator_state(self.env, state)
        if pose is not None:
            base: Any = self.env.unwrapped
            start, _ = puck_addresses(base.model)
            base.data.qpos[start : start + 7] = pose
            mujoco.mj_forward(base.model, base.data)
        return result


class Scene:
    """The slot task with renderers of the whole scene and of the puck for each camera.

    Args:
        grids: Number of active reset grids, 1 to 3.
        cameras: Names of the cameras.
        renderer: Key of `perception.rendering.RENDERERS`, for the agent's clouds.

    Attributes:
        base: Task with state observations.
        env: The same task with cloud observations.

    Raises:
        ValueError: Unknown camera or renderer, or invalid number of grids.
    """

    def __init__(self, grids: int = 1, cameras: Sequence[str] = ("overhead",), renderer: str = "ray") -> None:
        self.base = PushEnv("push-slot", grids=grids, render_mode="rgb_array")
        size: dict[str, Any] = {"width": CLOUD_SIZE, "height": CLOUD_SIZE}
        self.env = PointCloudObservation(Posed(self.base), cameras=cameras, renderer=renderer, **size)
        self.cameras = tuple(cameras)
        model = self.base.model
        self._puck = {name: make_renderer(renderer, model, name, **size) for name in self.cameras}
        size = {"width": IMAGE_SIZE, "height": IMAGE_SIZE}
        self._everything = {name: make_renderer("gl", model, name, **size) for name in self.cameras}

    def rgb(self, camera: str) -> UInt8[np.ndarray, "height width 3"]:
        """Return the colour image: the central square of the image rendered by the task."""
        self.base.camera = camera
        picture = self.base.render()
        assert picture is not None
        left = (picture.shape[1] - IMAGE_SIZE) // 2
        return picture[:, left : left + IMAGE_SIZE]

    def pixels(self, camera: str) -> Float[np.ndarray, "num_points 2"]:
        """Return the positions of the observed points in `rgb` (column, row), shape (num_points, 2) [pixels]."""
        pose = camera_to_world(self.base.model, self.base.data, camera)
        return project(self.env.points_world, pose, self._everything[camera].intrinsics)

    def view(self, camera: str, title: str) -> View:
        """Return the view of the current state, which must be the last one that `env` observed.

        Raises:
            GraphicsError: OpenGL is missing.
        """
        depth, _ = self._everything[camera].render(self.base.data)
        renderer = self._puck[camera]
        puck_depth, mask = renderer.render(self.base.data)
        pose = camera_to_world(self.base.model, self.base.data, camera)
        cloud = transform(back_project(puck_depth, mask, renderer.intrinsics), pose)
        return View(title, self.rgb(camera), depth, mask, cloud, self.env.points_world.copy(), self.pixels(camera))

    def surroundings(
        self, view: View, camera: str
    ) -> tuple[Float[np.ndarray, "cloud 3"], Float[np.ndarray, "cloud 3"]]:
        """Back-project the whole image of a view.

        Returns:
            Points, world frame, shape (cloud, 3) [m], and their colours in [0, 1], shape (cloud, 3).
        """
        near = view.depth < FAR
        near[1::2], near[:, 1::2] = False, False  # a quarter of the pixels is dense enough
        pose = camera_to_world(self.base.model, self.base.data, camera)
        return transform(back_project(view.depth, near, self._everything[camera].intrinsics), pose), view.rgb[
            near
        ] / 255

    def close(self) -> None:
        """Close the renderers and the environment."""
        for renderer in (*self._puck.values(), *self._everything.values()):
            renderer.close()
        self.env.close()


def puck_poses(trajectory: Trajectory, goal: Float[np.ndarray, "2"]) -> Float[np.ndarray, "steps 7"]:
    """Return the poses of the puck along a demonstration, world frame, shape (H + 1, 7) [m, quaternion (w, x, y, z)].

    If poses were not recorded, the puck is placed flat on the table at its recorded position in the plane.
    """
    if "puck_pose" in trajectory.observations:
        return trajectory.observations["puck_pose"]
    rows = trajectory.observations
    relative = rows["state"][:, 4:6] if "state" in rows else rows["pointcloud"][..., 2:].mean(axis=1)
    flat = np.array([TABLE_HEIGHT + PUCK_HALF_HEIGHT, 1.0, 0.0, 0.0, 0.0])
    return np.concatenate([relative + goal, np.tile(flat, (len(relative), 1))], axis=1)


class Replayed(NamedTuple):
    """A frame of a demonstration that is replayed.

    Attributes:
        distance: Distance of the puck from its recorded position, in the plane [m].
        cloud: Cloud that is observed, shape (num_points, 4) [m].
        visible: Whether the cameras see the puck.
    """

    distance: float
    cloud: Float32[np.ndarray, "num_points 4"]
    visible: bool


def replay(scene: Scene, trajectory: Trajectory) -> Iterator[Replayed]:
    """Set the scene to each state of a demonstration in turn, and yield what is seen.

    Recorded states of the simulator are restored. Without them, recorded actions are applied from the recorded start.
    Without actions or without a start, puck and end effector are placed at their recorded positions.

    Raises:
        ValueError: The states belong to another model.
    """

    def frame(pose: Float[np.ndarray, "7"], observed: tuple[Any, ...]) -> Replayed:
        return Replayed(_distance(scene, pose), observed[0], observed[-1]["puck_visible"])

    poses = puck_poses(trajectory, scene.base.goal_position)
    if trajectory.states is not None:
        for state, pose in zip(trajectory.states, poses, strict=False):
            yield frame(pose, scene.env.reset(options={"simulator": state}))
        return
    if trajectory.actions is not None and (start := _start(scene, trajectory, poses[0])):
        yield frame(poses[0], start)
        for action, pose in zip(trajectory.actions, poses[1:], strict=True):
            yield frame(pose, scene.env.step(action))
        return
    rows = trajectory.observations
    reach = rows["state"][:, :2] if "state" in rows else rows["pointcloud"][..., :2].mean(axis=1)
    for pose, offset in zip(poses, reach, strict=True):
        tip = np.clip(pose[:2] - offset, *WORKSPACE)  # a hand may have been outside the workspace of the arm
        yield frame(pose, scene.env.reset(options={"puck": pose[:2], "end_effector": tip, "puck_pose": pose}))


def straying(scene: Scene, trajectory: Trajectory) -> float:
    """Apply the recorded actions and return the largest distance of the puck from its recorded position, in xy [m].

    Raises:
        ValueError: There are no actions, or neither states nor a start were recorded.
    """
    poses = puck_poses(trajectory, scene.base.goal_position)
    played = play_actions(scene.base, trajectory)
    return max(_distance(scene, pose) for _, pose in zip(played, poses, strict=True))


def _start(scene: Scene, trajectory: Trajectory, pose: Float[np.ndarray, "7"]) -> tuple[Any, ...] | None:
    """Reset the scene to the start of a demonstration; return what the reset returns, or None if it is not known."""
    if trajectory.seed is not None and trajectory.grid is not None:
        # The drawn start is exact, whereas a recorded one is rounded to float32; pushing amplifies the difference.
        start = scene.env.reset(seed=trajectory.seed, options={"grid": trajectory.grid})
        if _distance(scene, pose) < SAME_START:
            return start
    known = {"state", "puck_pose"} <= set(trajectory.observations)
    return scene.env.reset(options=trajectory.start) if known else None


def _distance(scene: Scene, pose: Float[np.ndarray, "7"]) -> float:
    return float(np.hypot(*(scene.base.puck_position[:2] - pose[:2])))
