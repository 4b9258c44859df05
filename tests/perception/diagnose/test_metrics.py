"""Measures against brute force, and against what is known of discs that move."""

import itertools

import numpy as np
import pytest

from perception.diagnose.metrics import (
    POSITIONS,
    Pairs,
    centroid_error,
    gap,
    hausdorff,
    longest_run,
    nearest_pairs,
    offset_and_jitter,
)


def random_clouds(frames=12, points=7, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(frames, points, 4)).astype(np.float32)


def brute_hausdorff(a, b) -> float:
    one = max(min(np.linalg.norm(p - q) for q in b) for p in a)
    return max(one, max(min(np.linalg.norm(p - q) for p in a) for q in b))


def test_hausdorff_distances_against_brute_force():
    clouds = random_clouds()
    found = np.stack([hausdorff(cloud, clouds) for cloud in clouds])
    expected = [[brute_hausdorff(a.astype(float), b.astype(float)) for b in clouds] for a in clouds]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    shuffled = clouds[:, np.random.default_rng(1).permutation(7)]
    np.testing.assert_allclose(hausdorff(clouds[0], shuffled), found[0], atol=1e-12)


def test_ideal_clouds_are_as_far_apart_as_their_states():
    """Whether the puck moves, the end effector, or both."""
    rng = np.random.default_rng(0)
    puck, moves = rng.normal(size=(20, 2)), rng.normal(size=(30, 2, 2))
    cloud = np.concatenate([puck, puck + 0.5], axis=1)
    moved = np.concatenate([puck + moves[:, None, 0], puck + 0.5 + moves[:, None, 1]], axis=2)
    np.testing.assert_allclose(hausdorff(cloud, moved), np.linalg.norm(moves, axis=(1, 2)), atol=1e-9)


def test_nearest_clouds_are_of_other_episodes():
    clouds, episode = random_clouds(), np.repeat([0, 1, 2], 4)
    states = np.random.default_rng(2).normal(size=(12, 8)).astype(np.float32)
    pairs = nearest_pairs(clouds, states, episode)
    for i, j, apart, distance in zip(*pairs, strict=True):
        others = {k: brute_hausdorff(clouds[i], clouds[k]) for k in range(12) if episode[k] != episode[i]}
        assert j == min(others, key=others.get) and apart == pytest.approx(others[j], abs=1e-6)
        difference = states[i] - states[j]
        assert distance == pytest.approx(np.linalg.norm(difference[POSITIONS]), abs=1e-6)
    np.testing.assert_allclose(pairs.excess, pairs.states - pairs.clouds)


def test_of_many_frames_some_are_compared():
    clouds, states, episode = random_clouds(40), np.zeros((40, 8), np.float32), np.repeat([0, 1], 20)
    pairs = nearest_pairs(clouds, states, episode, most=10)
    assert len(pairs.frames) == 10 and pairs.frames[0] == 0 and pairs.frames[-1] == 39
    assert set(pairs.nearest) <= set(pairs.frames)


def test_equal_clouds_of_distant_states_have_the_excess_of_the_states():
    clouds, states = np.repeat(random_clouds(1), 2, axis=0), np.zeros((2, 8), np.float32)
    states[1, 4], states[1, 6] = 0.3, 9.0  # a position, and a velocity, which no cloud shows
    pairs = nearest_pairs(clouds, states, np.array([0, 1]))
    np.testing.assert_allclose(pairs.excess, 0.3, atol=1e-6)
    assert isinstance(pairs, Pairs)


def test_the_largest_gap_against_brute_force():
    rng = np.random.default_rng(0)
    surface, points = rng.normal(size=(30, 3)), rng.normal(size=(6, 3))
    expected = max(min(np.linalg.norm(q - p) for p in points) for q in surface)
    assert gap(surface, points) == pytest.approx(expected)
    assert gap(points, np.concatenate([points, surface])) == 0.0
    assert gap(np.empty((0, 3)), points) == 0.0


def test_runs_end_with_the_episode():
    for flags in itertools.product([False, True], repeat=7):
        flags, episode = np.array(flags), np.array([0, 0, 0, 1, 1, 1, 1])
        parts = ["".join("x" if f else " " for f in flags[episode == e]) for e in (0, 1)]
        assert longest_run(flags, episode) == max(len(run) for part in parts for run in part.split(" "))


def test_the_centroid_of_a_half_disc_is_off_by_what_geometry_says():
    """4 r / 3 π towards the side that is seen."""
    x, y = np.meshgrid(np.linspace(-1, 1, 801), np.linspace(-1, 1, 801))
    seen = (x**2 + y**2 <= 1) & (x > 0)
    points = np.stack([x[seen] + 3, y[seen] - 2, np.ones(seen.sum())], axis=1)[None]
    np.testing.assert_allclose(centroid_error(points, np.array([[3.0, -2.0, 0.0]])), [[4 / (3 * np.pi), 0]], atol=5e-3)


def test_offset_and_jitter_are_the_parts_of_the_displacement():
    rng, episode = np.random.default_rng(0), np.repeat([4, 7, 9], [50, 20, 30])
    constant = np.array([[3.0, 0.0], [0.0, -3.0], [3.0, 0.0]]).repeat([50, 20, 30], axis=0)
    assert offset_and_jitter(constant, episode) == pytest.approx((3.0, 0.0))
    moved = constant + rng.normal(size=(100, 2))
    offset, jitter = offset_and_jitter(moved, episode)
    assert offset**2 + jitter**2 == pytest.approx((moved**2).sum(axis=1).mean())
    assert jitter == pytest.approx(np.sqrt(2), abs=0.2)
    assert np.isnan(offset_and_jitter(moved[:0], episode[:0])).all()
