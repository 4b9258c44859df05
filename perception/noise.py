"""Noise of a depth camera: errors of the depth, pixels without depth, and errors of the calibrated pose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32
from scipy.spatial.transform import Rotation

from envs.ranges import Range

RANGES = {"depth": Range(0, 0.1), "dropped": Range(0, 1), "position": Range(0, 0.5), "rotation": Range(0, 45)}
UNITS = {"depth": " m", "dropped": "", "position": " m", "rotation": " degrees"}
_STREAM = (1,)  # apart from the generator of the environment, which has the same seed


@dataclass(frozen=True)
class Noise:
    """Standard deviations of a depth camera's Gaussian errors, and the share of pixels that it loses.

    The error of the depth grows with its square, as where depth is computed from a disparity (stereo, structured
    light). Khoshelham and Elberink (Accuracy and resolution of Kinect depth data, Sensors 2012) measured up to 4 cm at
    5 m with a Kinect, which is about 0.0015 m at 1 m.
    """

    depth: float = 0.0
    """Standard deviation of the depth at a depth of 1 m [m]."""
    dropped: float = 0.0
    """Share of the object's pixels that have no depth, drawn anew in every frame."""
    position: float = 0.0
    """Standard deviation of the camera's known position, per axis, drawn once per episode and camera [m]."""
    rotation: float = 0.0
    """Standard deviation of the camera's known orientation, per axis, drawn once per episode and camera [degrees]."""


def checked_noise(settings: Noise | Mapping[str, Any]) -> Noise:
    """Return the noise of the given settings: a `Noise`, or a mapping of them as in JSON.

    Raises:
        ValueError: A setting is unknown, no number or out of range; the message names it and the range.
    """
    known = [field.name for field in fields(Noise)]
    if not isinstance(settings, Noise):
        if not isinstance(settings, Mapping) or set(settings) - set(known):
            raise ValueError(f"noise is {settings!r}; give a Noise, or a mapping with any of {', '.join(known)}")
        settings = Noise(**settings)
    for name in known:
        value = getattr(settings, name)
        if not isinstance(value, int | float) or value not in RANGES[name]:
            raise ValueError(f"noise: {name} is {value!r}; it must lie in {RANGES[name]}{UNITS[name]}")
    return settings


def noisy_depth(
    depth: Float32[np.ndarray, "height width"],
    mask: Bool[np.ndarray, "height width"],
    noise: Noise,
    rng: np.random.Generator,
) -> Float32[np.ndarray, "height width"]:
    """Return a depth image with errors on the mask, z + σ z² ε with ε ~ N(0, 1), and NaN for lost pixels.

    The number of draws does not depend on the noise, so that the errors of two levels differ by a factor only.

    Args:
        depth: Distance z along the optical axis, shape (height, width) [m].
        mask: Pixels of the object, shape (height, width); the others are left alone.
        noise: Noise; σ is `depth`, the probability of a loss `dropped`.
        rng: Random number generator.
    """
    z = depth[mask]
    lost, errors = rng.random(len(z)) < noise.dropped, rng.standard_normal(len(z))
    noisy = depth.copy()
    noisy[mask] = np.where(lost, np.nan, z + noise.depth * z**2 * errors)
    return noisy


def pose_error(noise: Noise, rng: np.random.Generator) -> Float[np.ndarray, "4 4"]:
    """Draw an error E of a calibrated pose; the known pose is T E for the true pose T, ``camera_to_world``.

    E consists of a translation and of a rotation vector in the axes of the camera, each with three independent Gaussian
    components.
    """
    error = np.eye(4)
    error[:3, 3] = noise.position * rng.standard_normal(3)
    error[:3, :3] = Rotation.from_rotvec(noise.rotation * rng.standard_normal(3), degrees=True).as_matrix()
    return error


class NoiseSource:
    """Noise along episodes: that of the depth is drawn in every frame, that of the poses at every reset.

    Args:
        noise: Noise.
        cameras: Names of the cameras, whose errors are independent.
    """

    def __init__(self, noise: Noise, cameras: Sequence[str]) -> None:
        self._noise = noise
        self._rng = np.random.default_rng()
        self._pose_errors = {camera: np.eye(4) for camera in cameras}

    def reset(self, seed: int | None) -> None:
        """Start an episode; with a seed, what follows depends on nothing else."""
        if seed is not None:
            self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_STREAM))
        self._pose_errors = {camera: pose_error(self._noise, self._rng) for camera in self._pose_errors}

    def depth(
        self, depth: Float32[np.ndarray, "height width"], mask: Bool[np.ndarray, "height width"]
    ) -> Float32[np.ndarray, "height width"]:
        """Return what the camera measures in place of a depth image; see `noisy_depth`."""
        return noisy_depth(depth, mask, self._noise, self._rng)

    def pose(self, camera: str, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "4 4"]:
        """Return what is taken for the pose of a camera in this episode; see `pose_error`."""
        return pose @ self._pose_errors[camera]

    def get_state(self) -> dict[str, Any]:
        """Return generator and errors of the episode as plain data for a checkpoint."""
        errors = {camera: error.tolist() for camera, error in self._pose_errors.items()}
        return {"generator": self._rng.bit_generator.state, "pose_errors": errors}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state`."""
        self._rng.bit_generator.state = state["generator"]
        self._pose_errors = {camera: np.array(error) for camera, error in state["pose_errors"].items()}
