"""Stock stack of the benchmark: robosuite's environment and cameras, Open3D, and Stable-Baselines3's SAC."""

import os
from typing import Any

import gymnasium as gym
import numpy as np
import robosuite
from jaxtyping import Bool, Float, Int
from robosuite.utils.camera_utils import (
    get_camera_extrinsic_matrix,
    get_camera_intrinsic_matrix,
    get_real_depth_map,
)
from stable_baselines3 import SAC
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

import envs.push.tasks  # noqa: F401 (registers the tasks with robosuite)
from envs.push.placement import TIP_SITE
from perception.point_cloud import open3d

CAMERA = "overhead"
IMAGE_SIZE = 84  # width and height, smaller than the project's [pixels]
NUM_POINTS = 20
PUCK_GEOMS = ("puck_g0", "puck_g0_vis")


class StockPush(gym.Env[np.ndarray, np.ndarray]):
    """`PushSlot` with robosuite's controller, hard resets and camera observations.

    Observations have the same shape and meaning as the project's, so that both learners do the same work.

    Args:
        clouds: Observe 20 points (from depth and element segmentation, with Open3D) instead of the state.
    """

    def __init__(self, clouds: bool) -> None:
        self.clouds = clouds
        # If it is unset, robosuite parses CUDA_VISIBLE_DEVICES as a number, but that may be empty or hold names.
        os.environ.setdefault("MUJOCO_EGL_DEVICE_ID", "0")
        cameras: dict[str, Any] = {
            "camera_names": CAMERA,
            "camera_heights": IMAGE_SIZE,
            "camera_widths": IMAGE_SIZE,
            "camera_depths": True,  # all zeros unless the colour image is enabled, as it is by default
            "camera_segmentations": "element",
        }
        self.robosuite = robosuite.make(
            "PushSlot",
            robots="Panda",
            hard_reset=True,
            use_object_obs=False,
            use_camera_obs=clouds,
            has_offscreen_renderer=clouds,
            horizon=10**9,
            **(cameras if clouds else {}),
        )
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        shape = (NUM_POINTS, 4) if clouds else (8,)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset with robosuite's default, which rebuilds the model."""
        super().reset(seed=seed)
        if self.robosuite.hard_reset:
            self._free_context()
        return self.observe(self.robosuite.reset()), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Step robosuite's environment."""
        self._make_current()
        observation, reward, _, _ = self.robosuite.step(action)
        return self.observe(observation), reward, reward > 0, False, {}

    def observe(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """Convert robosuite's observation to the project's: state (8,) or points (20, 4)."""
        tip, goal = observation["robot0_eef_pos"][:2], self.robosuite.goal
        if self.clouds:
            names = (f"{CAMERA}_depth", f"{CAMERA}_segmentation_element")
            points = self.cloud(*self.depth_and_mask(*(observation[name][..., 0] for name in names)))[:, :2]
            return np.concatenate([points - tip, points - goal[:2]], axis=1).astype(np.float32)
        data = self.robosuite.sim.data
        puck, velocity = data.qpos[-7:-5], data.qvel[-6:-4]
        tip_velocity = data.get_site_xvelp(TIP_SITE)[:2]
        return np.concatenate([puck - tip, velocity - tip_velocity, puck - goal[:2], velocity - goal[2:]]).astype(
            np.float32
        )

    def render(self) -> tuple[Float[np.ndarray, "height width"], Int[np.ndarray, "height width"]]:  # type: ignore[override]
        """Render as for camera observations: colour and depth buffer, then geom ids; return depth buffer and ids."""
        self._make_current()
        size = {"camera_name": CAMERA, "width": IMAGE_SIZE, "height": IMAGE_SIZE}
        _, depth = self.robosuite.sim.render(depth=True, **size)
        return depth, self.robosuite.sim.render(segmentation=True, **size)[..., 1]

    def depth_and_mask(
        self, depth: Float[np.ndarray, "height width"], ids: Int[np.ndarray, "height width"]
    ) -> tuple[Float[np.ndarray, "height width"], Bool[np.ndarray, "height width"]]:
        """Convert robosuite's images, bottom row first, to depth [m] and the mask of the puck, top row first."""
        sim = self.robosuite.sim
        puck = [sim.model.geom_name2id(name) for name in PUCK_GEOMS]
        return get_real_depth_map(sim, depth)[::-1], np.isin(ids, puck)[::-1]

    def cloud(
        self, depth: Float[np.ndarray, "height width"], mask: Bool[np.ndarray, "height width"]
    ) -> Float[np.ndarray, "num_points 3"]:
        """Back-project the pixels of the puck and sample 20 points with Open3D, in the world frame [m]."""
        sim, o3d = self.robosuite.sim, open3d()
        matrix = get_camera_intrinsic_matrix(sim, CAMERA, IMAGE_SIZE, IMAGE_SIZE)
        pinhole = o3d.camera.PinholeCameraIntrinsic(IMAGE_SIZE, IMAGE_SIZE, *matrix[[0, 1, 0, 1], [0, 1, 2, 2]])
        image = o3d.geometry.Image(np.where(mask, depth, 0.0).astype(np.float32))
        cloud = o3d.geometry.PointCloud.create_from_depth_image(image, pinhole, depth_scale=1.0, depth_trunc=10.0)
        cloud.transform(get_camera_extrinsic_matrix(sim, CAMERA))
        if len(cloud.points) >= NUM_POINTS:
            cloud = cloud.farthest_point_down_sample(NUM_POINTS)
        points = np.asarray(cloud.points)
        return np.resize(points, (NUM_POINTS, 3)) if len(points) else np.zeros((NUM_POINTS, 3))

    def close(self) -> None:
        """Close robosuite's environment."""
        self._free_context()
        self.robosuite.close()

    def _free_context(self) -> None:
        # The garbage collector would delete the buffers by their ids in whichever context is current at that time.
        if self.clouds and self.robosuite.sim is not None:
            self._make_current()
            old = self.robosuite.sim._render_context_offscreen
            old.con.free()
            old.gl_ctx.free()

    def _make_current(self) -> None:
        # robosuite renders into the current context, which may belong to another renderer.
        if self.clouds:
            self.robosuite.sim._render_context_offscreen.gl_ctx.make_current()


class PlainPointNet(BaseFeaturesExtractor):
    """PointNet with the layers of the project's `pointnet`, as plain PyTorch modules."""

    def __init__(self, observation_space: gym.Space) -> None:
        super().__init__(observation_space, features_dim=64)
        self.points = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU())
        self.project = nn.Sequential(nn.Linear(128, 64), nn.LayerNorm(64))

    def forward(self, observations: Float[Tensor, "batch points 4"]) -> Float[Tensor, "batch 64"]:
        """Return the features of clouds."""
        return self.project(self.points(observations).amax(dim=1))


class FrozenPointNet(PlainPointNet):
    """`PlainPointNet` with fixed weights."""

    def __init__(self, observation_space: gym.Space) -> None:
        super().__init__(observation_space)
        self.requires_grad_(False)


# Encoders of clouds. By default actor, critics and target networks have separate encoders; a shared encoder is trained
# by the actor's loss.
ENCODERS: dict[str, dict[str, Any]] = {
    "separate": {"features_extractor_class": PlainPointNet},
    "shared": {"features_extractor_class": PlainPointNet, "share_features_extractor": True},
    "frozen": {"features_extractor_class": FrozenPointNet, "share_features_extractor": True},
}


def make_stock_agent(env: gym.Env, encoder: str | None = None, **settings: Any) -> SAC:
    """Make Stable-Baselines3's SAC with its default settings; for clouds, `encoder` is one of `ENCODERS`."""
    policy = {} if encoder is None else ENCODERS[encoder]
    return SAC("MlpPolicy", env, policy_kwargs=policy, seed=0, **settings)
