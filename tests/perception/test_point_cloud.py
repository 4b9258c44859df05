"""Clouds have exactly the number of points asked for, all of them measured ones."""

import numpy as np
import pytest

from perception.cameras import Intrinsics
from perception.point_cloud import back_project, crop, sample_points, transform


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 300, 20_000])
def test_exactly_n_of_the_points(count):
    points = np.random.default_rng(count).normal(size=(count, 3))
    sampled = sample_points(points, 20)
    assert sampled.shape == (20, 3)
    distinct = {tuple(row) for row in sampled}
    assert distinct <= {tuple(row) for row in points}
    assert len(distinct) == min(count, 20)
    np.testing.assert_array_equal(sampled, sample_points(points.copy(), 20))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exactly_n_finite_points_whatever_goes_in(dtype):
    """Repeated rows, rows that are not finite and any scale: n rows, and as many distinct ones as there can be."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        count, num_points = rng.integers(1, 100, 2)
        points = (rng.normal(size=(count, 3)) * 10.0 ** rng.integers(-9, 9)).astype(dtype)
        points = points[rng.integers(rng.integers(1, count + 1), size=count)]
        points[rng.random((count, 3)) < rng.choice([0.0, 0.2])] = rng.choice([np.nan, np.inf, -np.inf])
        finite = {tuple(row) for row in points[np.isfinite(points).all(axis=1)]}
        if not finite:
            with pytest.raises(ValueError, match="without a finite point"):
                sample_points(points, int(num_points))
            continue
        sampled = sample_points(points, int(num_points))
        distinct = {tuple(row) for row in sampled}
        assert sampled.shape == (num_points, 3)
        assert distinct <= finite and len(distinct) == min(len(finite), num_points)


@pytest.mark.parametrize(("rows", "distinct"), [(40, 6), (40, 1), (400, 19)])
def test_fewer_distinct_points_than_asked_for(rows, distinct):
    points = np.random.default_rng(0).normal(size=(distinct, 3))
    sampled = sample_points(points[np.arange(rows) % distinct], 20)
    assert sampled.shape == (20, 3) and {tuple(row) for row in sampled} == {tuple(row) for row in points}


def test_few_points_repeat_in_turn():
    points = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(sample_points(points, 7), points[[0, 1, 2, 0, 1, 2, 0]])


def test_sampling_spreads():
    """Farthest points of a line with a dense cluster: the far end is taken, though one point in a thousand."""
    points = np.zeros((1001, 3))
    points[:1000, 0] = np.linspace(0, 0.01, 1000)
    points[1000, 0] = 1.0
    assert 1.0 in sample_points(points, 2)[:, 0]


def test_empty_cloud_is_refused():
    with pytest.raises(ValueError, match="empty cloud"):
        sample_points(np.zeros((0, 3)), 20)


def test_back_projection_is_inverse_to_projection():
    camera = Intrinsics(width=7, height=5, focal=3.0)
    depth = np.random.default_rng(0).uniform(0.5, 2.0, (5, 7))
    mask = np.random.default_rng(1).random((5, 7)) < 0.5
    points = back_project(depth, mask, camera)
    pixels = points @ camera.matrix.T
    rows, columns = np.nonzero(mask)
    np.testing.assert_allclose(pixels[:, :2] / pixels[:, 2:], np.stack([columns, rows], axis=-1) + 0.5)
    np.testing.assert_array_equal(points[:, 2], depth[mask])


def test_images_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"\(7, 5\)"):
        back_project(np.ones((7, 5)), np.ones((7, 5), dtype=bool), Intrinsics(width=7, height=5, focal=3.0))


def test_transform_and_crop():
    pose = np.array([[0.0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]])
    points = transform(np.array([[1.0, 0, 0], [0, 1, 0]]), pose)
    np.testing.assert_allclose(points, [[1, 3, 3], [0, 2, 3]])
    np.testing.assert_array_equal(crop(points, np.array([[0.5, 0, 0], [2, 4, 4]])), points[:1])
    assert crop(points[:0], np.array([[0.0, 0, 0], [1, 1, 1]])).shape == (0, 3)


def test_more_points_than_are_thinned_to():
    points = np.random.default_rng(0).normal(size=(6000, 3))
    assert len(np.unique(sample_points(points, 5000), axis=0)) == 5000
