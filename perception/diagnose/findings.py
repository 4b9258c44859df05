"""What is found about a view, one camera or several fused: its arrays per frame, and the numbers that sum them up."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from envs.push.success import SUCCESS_DISTANCE
from perception.diagnose.episodes import Frames
from perception.diagnose.metrics import (
    Pairs,
    centroid_error,
    gap,
    longest_run,
    nearest_pairs,
    offset_and_jitter,
)
from perception.diagnose.sight import Clouds, Surface

ALIASED = SUCCESS_DISTANCE  # excess of a pair's states from which on its clouds do not tell them apart [m]


@dataclass(frozen=True)
class Measured:
    """Measurements of a view in every frame.

    Attributes:
        cameras: Names of the cameras.
        episode: Number of the episode, shape (frames,).
        puck: Centre of the puck in the plane, world frame, shape (frames, 2) [m].
        points: Number of points of a cloud.
        visible: Whether the frame shows the puck, shape (frames,).
        visible_in_noise: The same with noise, shape (frames,).
        pixels: Pixels that see the puck, of all cameras, shape (frames,).
        share: Share of the surface that faces the cameras that they see, by pixels, shape (frames,).
        error: Centroid of the observed points minus centre of the puck, shape (frames, 2) [m]; NaN if it is hidden.
        gap: Largest distance from a point of that surface to the nearest observed point, shape (frames,) [m]; NaN
            likewise.
        pairs: Frames with the nearest clouds of other episodes.
        moved: Displacement of the centroid by noise, shape (frames, 2) [m]; NaN where the puck is hidden in either.
        miscalibrated: The same by the calibration error alone, shape (frames, 2) [m].
        recovered: R² of the probe per number of the state, shape (8,).
    """

    cameras: tuple[str, ...]
    episode: Int[np.ndarray, " frames"]
    puck: Float[np.ndarray, "frames 2"]
    points: int
    visible: Bool[np.ndarray, " frames"]
    visible_in_noise: Bool[np.ndarray, " frames"]
    pixels: Int[np.ndarray, " frames"]
    share: Float[np.ndarray, " frames"]
    error: Float[np.ndarray, "frames 2"]
    gap: Float[np.ndarray, " frames"]
    pairs: Pairs
    moved: Float[np.ndarray, "frames 2"]
    miscalibrated: Float[np.ndarray, "frames 2"]
    recovered: Float[np.ndarray, "8"]


@dataclass(frozen=True)
class Findings:
    """Numbers that sum up a view; NaN where there is nothing to measure.

    Attributes:
        cameras: Names of the cameras.
        seen: Mean share of the puck's facing surface that is seen, in [0, 1].
        pixels: Median number of pixels that see it.
        points: Number of points of a cloud.
        hidden: Share of the frames without the puck.
        lost: The same with noise.
        longest: Longest run of such frames in an episode.
        error: Median and 95 % quantile of the distance of the centroid from the puck's centre [m].
        bias: Mean of the centroid's error, x and y [m].
        gap: Median and 95 % quantile of the largest gap between the points [m].
        aliased: Share of the frames whose nearest cloud of another episode is of a state that is more than `ALIASED`
            further away than this cloud.
        worst: Distances of states and of clouds in the pair with the largest excess [m].
        worst_frames: Episode and step of both frames of this pair.
        offset: Displacement of the centroid by noise that is constant in an episode, root mean square [m].
        jitter: The rest of this displacement, root mean square [m].
        miscalibration: Displacement of the centroid by the calibration error alone, root mean square [m].
        recovered: R² of the probe for [s_PE, v_PE, s_PG, v_PG].
    """

    cameras: tuple[str, ...]
    seen: float
    pixels: float
    points: int
    hidden: float
    lost: float
    longest: int
    error: tuple[float, float]
    bias: tuple[float, float]
    gap: tuple[float, float]
    aliased: float
    worst: tuple[float, float]
    worst_frames: tuple[tuple[int, int], tuple[int, int]]
    offset: float
    jitter: float
    miscalibration: float
    recovered: tuple[float, ...]

    @property
    def name(self) -> str:
        """Names of the cameras, joined."""
        return " + ".join(self.cameras)


def measure(
    cameras: Sequence[str],
    frames: Frames,
    clouds: Clouds,
    noisy: Clouds,
    miscalibrated: Clouds,
    surfaces: Sequence[Surface],
    recovered: Float[np.ndarray, "8"],
) -> Measured:
    """Measure a view in every frame.

    Args:
        cameras: Names of the cameras.
        frames: Frames.
        clouds: Clouds of the frames.
        noisy: The same under noise.
        miscalibrated: The same under the calibration error of this noise alone.
        surfaces: Surface that faces each camera.
        recovered: R² of the probe.
    """
    pixels = np.sum([surface.seen for surface in surfaces], axis=0)
    there = np.sum([surface.there for surface in surfaces], axis=0)
    facing = [np.concatenate(parts) for parts in zip(*(surface.points for surface in surfaces), strict=True)]
    gaps = np.array([gap(surface, points) for surface, points in zip(facing, clouds.points, strict=True)])
    error = centroid_error(clouds.points, frames.puck)

    def moved(changed: Clouds) -> Float[np.ndarray, "frames 2"]:
        by = centroid_error(changed.points, frames.puck) - error
        return np.where((clouds.visible & changed.visible)[:, None], by, np.nan)

    return Measured(
        cameras=tuple(cameras),
        episode=frames.episode,
        puck=frames.puck[:, :2],
        points=clouds.points.shape[1],
        visible=clouds.visible,
        visible_in_noise=noisy.visible,
        pixels=pixels,
        share=pixels / np.maximum(there, 1),
        error=np.where(clouds.visible[:, None], error, np.nan),
        gap=np.where(clouds.visible, gaps, np.nan),
        pairs=nearest_pairs(clouds.observations, frames.state, frames.episode),
        moved=moved(noisy),
        miscalibrated=moved(miscalibrated),
        recovered=recovered,
    )


def sum_up(measured: Measured) -> Findings:
    """Sum up the measurements of a view."""
    visible, pairs = measured.visible, measured.pairs
    worst = int(pairs.excess.argmax())
    first = np.searchsorted(measured.episode, measured.episode)  # first frame of the episode of each frame
    labels = [(int(measured.episode[i]), int(i - first[i])) for i in (pairs.frames[worst], pairs.nearest[worst])]
    known = np.isfinite(measured.moved[:, 0])
    offset, jitter = offset_and_jitter(measured.moved[known], measured.episode[known])
    error = measured.error[visible]
    bias = error.mean(axis=0) if len(error) else np.full(2, np.nan)
    return Findings(
        cameras=measured.cameras,
        seen=float(measured.share.mean()),
        pixels=float(np.median(measured.pixels)),
        points=measured.points,
        hidden=float((~visible).mean()),
        lost=float((~measured.visible_in_noise).mean()),
        longest=longest_run(~visible, measured.episode),
        error=_middle_and_high(np.hypot(*error.T)),
        bias=(float(bias[0]), float(bias[1])),
        gap=_middle_and_high(measured.gap[visible]),
        aliased=float((pairs.excess > ALIASED).mean()),
        worst=(float(pairs.states[worst]), float(pairs.clouds[worst])),
        worst_frames=(labels[0], labels[1]),
        offset=offset,
        jitter=jitter,
        miscalibration=_root_mean_square(measured.miscalibrated),
        recovered=tuple(measured.recovered.tolist()),
    )


def _root_mean_square(moved: Float[np.ndarray, "frames 2"]) -> float:
    known = moved[np.isfinite(moved[:, 0])]
    return float(np.sqrt((known**2).sum(axis=1).mean())) if len(known) else np.nan


def _middle_and_high(values: Float[np.ndarray, " values"]) -> tuple[float, float]:
    middle, high = np.quantile(values, (0.5, 0.95)).tolist() if len(values) else (np.nan, np.nan)
    return middle, high
