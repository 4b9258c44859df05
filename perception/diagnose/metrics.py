"""Measures of clouds against the state that they stand for, as functions of arrays."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

POSITIONS = [0, 1, 4, 5]  # columns of [s_PE, s_PG] in a state observation


class Pairs(NamedTuple):
    """Frames, each with the frame of another episode whose cloud is nearest.

    Attributes:
        frames: Index of the frame, shape (pairs,).
        nearest: Index of the frame with the nearest cloud, shape (pairs,).
        clouds: Hausdorff distance of the clouds, shape (pairs,) [m].
        states: Distance of the states [s_PE, s_PG], shape (pairs,) [m].
    """

    frames: Int[np.ndarray, " pairs"]
    nearest: Int[np.ndarray, " pairs"]
    clouds: Float[np.ndarray, " pairs"]
    states: Float[np.ndarray, " pairs"]

    @property
    def excess(self) -> Float[np.ndarray, " pairs"]:
        """How much further apart the states are than their clouds, shape (pairs,) [m]."""
        return self.states - self.clouds


def centroid_error(
    points: Float[np.ndarray, "frames points 3"], puck: Float[np.ndarray, "frames 3"]
) -> Float[np.ndarray, "frames 2"]:
    """Return (1/n) Σ_i p_i − P in the plane, for the centre P of the puck, world frame, shape (frames, 2) [m]."""
    return points[..., :2].mean(axis=1) - puck[:, :2]


def gap(surface: Float[np.ndarray, "surface 3"], points: Float[np.ndarray, "points 3"]) -> float:
    """Return the largest distance from a point of the surface to the nearest of the points, max_q min_i ‖q − p_i‖ [m].

    It is 0 for a surface without a point.
    """
    apart = np.linalg.norm(surface[:, None] - points, axis=-1)
    return float(apart.min(axis=1).max(initial=0.0))


def longest_run(flags: Bool[np.ndarray, " frames"], episode: Int[np.ndarray, " frames"]) -> int:
    """Return the length of the longest run of set flags within an episode."""
    longest = current = 0
    for index, flag in enumerate(flags):
        same = index > 0 and episode[index] == episode[index - 1]
        current = (current if same else 0) + 1 if flag else 0
        longest = max(longest, current)
    return longest


def hausdorff(
    cloud: Shaped[np.ndarray, "points columns"], others: Shaped[np.ndarray, "clouds points columns"]
) -> Float[np.ndarray, " clouds"]:
    """Return the Hausdorff distances of a cloud A from others B, max(max_a min_b ‖a − b‖, max_b min_a ‖a − b‖) [m].

    If one cloud is the other moved by Δ, it is ‖Δ‖. With rows [p − E, p − G] it is then the distance of the states
    [s_PE, s_PG]: ideal clouds of two states are as far apart as the states.
    """
    a, b = cloud.astype(float), others.astype(float)
    squared = (a**2).sum(-1)[None, :, None] + (b**2).sum(-1)[:, None] - 2 * a @ b.swapaxes(1, 2)
    return np.sqrt(np.maximum(np.maximum(squared.min(2).max(1), squared.min(1).max(1)), 0.0))


def nearest_pairs(
    clouds: Shaped[np.ndarray, "frames points 4"],
    states: Shaped[np.ndarray, "frames 8"],
    episode: Int[np.ndarray, " frames"],
    most: int = 1000,
) -> Pairs:
    """Find, for each frame, the frame of another episode whose cloud is nearest, and how far apart their states are.

    Args:
        clouds: Rows [p_i − E, p_i − G], shape (frames, points, 4) [m].
        states: State observations, shape (frames, 8) [m, m/s].
        episode: Number of the episode, shape (frames,); at least two.
        most: Largest number of frames; of more, as many are taken evenly, since all pairs are compared.
    """
    kept = np.arange(len(clouds))
    if len(kept) > most:
        kept = np.linspace(0, len(kept) - 1, most).astype(int)
    clouds, positions, episode = clouds[kept], states[kept][:, POSITIONS].astype(float), episode[kept]
    nearest, distance = np.empty(len(kept), int), np.empty(len(kept))
    for index, cloud in enumerate(clouds):
        apart = np.where(episode == episode[index], np.inf, hausdorff(cloud, clouds))
        nearest[index] = apart.argmin()
        distance[index] = apart[nearest[index]]
    return Pairs(kept, kept[nearest], distance, np.linalg.norm(positions - positions[nearest], axis=1))


def offset_and_jitter(moved: Float[np.ndarray, "frames 2"], episode: Int[np.ndarray, " frames"]) -> tuple[float, float]:
    """Split displacements m_t into what is constant in an episode and the rest.

    offset² = ⟨‖m̄_e‖²⟩ and jitter² = ⟨‖m_t − m̄_e‖²⟩ over all frames, with the mean m̄_e over the episode of the frame;
    their sum is ⟨‖m_t‖²⟩.

    Returns:
        Offset and jitter [m]; NaN without a frame.
    """
    if not len(moved):
        return np.nan, np.nan
    _, number, count = np.unique(episode, return_inverse=True, return_counts=True)
    mean = np.stack([np.bincount(number, column) for column in moved.T], axis=1) / count[:, None]
    rest = moved - mean[number]
    offset, jitter = (float(np.sqrt((part**2).sum(axis=1).mean())) for part in (mean[number], rest))
    return offset, jitter
