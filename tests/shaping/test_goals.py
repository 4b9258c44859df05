"""Goals live in the puck's columns only, and substitution is a change of where the goal is."""

import numpy as np
import pytest
import torch

from shaping import make_goals

KINDS = ("state", "pointcloud")


def observations(kind: str, count: int, seed: int = 0) -> np.ndarray:
    shape = make_goals(kind).observation_shape
    return np.random.default_rng(seed).normal(0.0, 0.1, (count, *shape)).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_substitution_moves_only_goal_columns(kind):
    goals, seen = make_goals(kind), observations(kind, 5)
    aimed = goals.substitute(seen, goals.extract(observations(kind, 7, seed=1)))
    assert aimed.shape == (5, 7, *seen.shape[1:])
    fixed = np.ones(seen.shape[-1], dtype=bool)
    fixed[goals.columns] = False
    np.testing.assert_array_equal(aimed[..., fixed], np.broadcast_to(seen[:, None], aimed.shape)[..., fixed])
    assert np.abs(aimed - seen[:, None])[..., ~fixed].min() > 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_own_goal_is_reached(kind):
    """Aimed at the goal it achieves, an observation is at its goal."""
    goals, seen = make_goals(kind), observations(kind, 6)
    aimed = goals.relabel(seen, goals.extract(seen))
    np.testing.assert_allclose(goals.extract(aimed), 0.0, atol=1e-7)
    np.testing.assert_allclose(np.diag(goals.displacement(seen, goals.extract(seen))), 0.0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_goals_need_no_absolute_coordinates(kind):
    """Moving the environment's goal moves observation and demonstration alike, and nothing of their relation."""
    goals, seen, shown = make_goals(kind), observations(kind, 4), observations(kind, 3, seed=1)
    moved = goals.shift(np.full(goals.goal_dim, 0.07, dtype=np.float32))
    reference = goals.substitute(seen, goals.extract(shown))
    np.testing.assert_allclose(goals.substitute(seen - moved, goals.extract(shown - moved)), reference, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_displacement_is_the_distance_left_after_substitution(kind):
    goals, seen = make_goals(kind), observations(kind, 5)
    goal = goals.extract(observations(kind, 7, seed=1))
    left = goals.extract(goals.substitute(seen, goal))[..., :2]
    np.testing.assert_allclose(goals.displacement(seen, goal), np.linalg.norm(left, axis=-1), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_torch_and_numpy_agree(kind):
    goals, seen = make_goals(kind), observations(kind, 5)
    goal = goals.clip(goals.extract(observations(kind, 7, seed=1)))
    tensor, tensor_goal = torch.from_numpy(seen), torch.from_numpy(goal)
    for name in ("substitute", "displacement"):
        array, result = getattr(goals, name)(seen, goal), getattr(goals, name)(tensor, tensor_goal)
        assert isinstance(result, torch.Tensor) and array.dtype == np.float32
        np.testing.assert_allclose(result.numpy(), array, atol=1e-7)
    np.testing.assert_allclose(goals.clip(goals.extract(tensor)).numpy(), goals.clip(goals.extract(seen)), atol=1e-7)


def test_cloud_goal_ignores_the_order_of_points():
    goals, seen = make_goals("pointcloud"), observations("pointcloud", 3)
    shuffled = seen[:, np.random.default_rng(1).permutation(seen.shape[1])]
    np.testing.assert_allclose(goals.extract(shuffled), goals.extract(seen), atol=1e-7)


def test_demonstrated_velocity_is_clipped_and_position_is_not():
    goals = make_goals("state", goal_speed=0.05)
    goal = np.array([[0.3, -0.3, 0.2, -0.01]], dtype=np.float32)
    np.testing.assert_array_equal(goals.clip(goal), np.array([[0.3, -0.3, 0.05, -0.01]], dtype=np.float32))
    assert goal[0, 2] == np.float32(0.2), "the demonstration itself is left alone"


def test_unknown_observation_lists_the_known():
    with pytest.raises(ValueError, match=r"'depth'.*state, pointcloud"):
        make_goals("depth")
