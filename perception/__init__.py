"""Depth and masks from MuJoCo cameras, point clouds of objects, and encoders: images → points → features.

Names are imported on first use, so that `import perception` needs neither Open3D, OpenGL nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import envs  # noqa: F401 (imported first: it limits BLAS to one thread before NumPy is loaded)

if TYPE_CHECKING:
    from perception.cameras import Intrinsics, camera_to_world, intrinsics
    from perception.depth import cloud_from_depth
    from perception.noise import Noise
    from perception.observation import PointCloudObservation
    from perception.point_cloud import back_project, crop, sample_points, transform
    from perception.registry import available_encoders, make_encoder, register_encoder
    from perception.rendering import RENDERERS, Renderer, make_renderer
    from perception.rgbd import RGBDObservation
    from perception.segmentation import segment_object

_HOMES = {
    "Intrinsics": "cameras",
    "camera_to_world": "cameras",
    "intrinsics": "cameras",
    "cloud_from_depth": "depth",
    "Noise": "noise",
    "PointCloudObservation": "observation",
    "back_project": "point_cloud",
    "crop": "point_cloud",
    "sample_points": "point_cloud",
    "transform": "point_cloud",
    "available_encoders": "registry",
    "make_encoder": "registry",
    "register_encoder": "registry",
    "RGBDObservation": "rgbd",
    "RENDERERS": "rendering",
    "Renderer": "rendering",
    "make_renderer": "rendering",
    "segment_object": "segmentation",
}

__all__ = [
    "RENDERERS",
    "Intrinsics",
    "Noise",
    "PointCloudObservation",
    "RGBDObservation",
    "Renderer",
    "available_encoders",
    "back_project",
    "camera_to_world",
    "cloud_from_depth",
    "crop",
    "intrinsics",
    "make_encoder",
    "make_renderer",
    "register_encoder",
    "sample_points",
    "segment_object",
    "transform",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'perception' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"perception.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
