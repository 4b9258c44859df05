"""Goals live in the puck's columns only, and substitution is a change of where the goal is."""

import json

import gymnasium as gym
import numpy as np
import pytest
import torch

from shaping import BoxGoals, CloudGoals, dict_goals, make_goals
from shaping.goals import goals_from_dict, goals_to_dict

SETS = {
    "state": make_goals("state"),
    "pointcloud": make_goals("pointcloud"),
    "displacement": BoxGoals(7, displacement=slice(2, 5), position=slice(0, 2)),
    "achieved": BoxGoals(9, achieved=slice(1, 4), desired=slice(6, 9), scale=(1.0, 2.0, 0.5)),
    "in space": CloudGoals(num_points=15, dims=3),
}
# Columns that depend on the goal of the environment, written out.
COLUMNS = {
    "state": [4, 5, 6, 7],
    "pointcloud": [2, 3],
    "displacement": [2, 3, 4],
    "achieved": [6, 7, 8],
    "in space": [3, 4, 5],
}
KINDS = tuple(SETS)


def observations(kind: str, count: int, seed: int = 0) -> np.ndarray:
    shape = SETS[kind].observation_shape
    return np.random.default_rng(seed).normal(0.0, 0.1, (count, *shape)).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_substitution_moves_only_goal_columns(kind):
    goals, seen = SETS[kind], observations(kind, 5)
    aimed = goals.substitute(seen, goals.extract(observations(kind, 7, seed=1)))
    assert aimed.shape == (5, 7, *seen.shape[1:])
    fixed = np.ones(seen.shape[-1], dtype=bool)
    fixed[COLUMNS[kind]] = False
    np.testing.assert_array_equal(aimed[..., fixed], np.broadcast_to(seen[:, None], aimed.shape)[..., fixed])
    assert np.abs(aimed - seen[:, None])[..., ~fixed].min() > 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_own_goal_is_reached(kind):
    """Aimed at the goal it achieves, an observation is at its goal."""
    goals, seen = SETS[kind], observations(kind, 6)
    aimed = goals.relabel(seen, goals.extract(seen))
    np.testing.assert_allclose(goals.extract(aimed), 0.0, atol=1e-7)
    np.testing.assert_allclose(np.diag(goals.distance(seen, goals.extract(seen))), 0.0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_goals_need_no_absolute_coordinates(kind):
    """Moving the environment's goal moves observation and demonstration alike, and nothing of their relation."""
    goals, seen, shown = SETS[kind], observations(kind, 4), observations(kind, 3, seed=1)
    moved = goals.shift(np.full(goals.goal_dim, 0.07, dtype=np.float32))
    reference = goals.substitute(seen, goals.extract(shown))
    np.testing.assert_allclose(goals.substitute(seen - moved, goals.extract(shown - moved)), reference, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_displacement_is_the_distance_left_after_substitution(kind):
    goals, seen = SETS[kind], observations(kind, 5)
    goal = goals.extract(observations(kind, 7, seed=1))
    left = goals.extract(goals.substitute(seen, goal))[..., : 3 if kind in ("achieved", "in space") else 2]
    left /= [1.0, 2.0, 0.5] if kind == "achieved" else 1.0
    np.testing.assert_allclose(goals.distance(seen, goal), np.linalg.norm(left, axis=-1), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_torch_and_numpy_agree(kind):
    goals, seen = SETS[kind], observations(kind, 5)
    goal = goals.clip(goals.extract(observations(kind, 7, seed=1)))
    tensor, tensor_goal = torch.from_numpy(seen), torch.from_numpy(goal)
    for name in ("substitute", "distance"):
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


@pytest.mark.parametrize("kind", ["displacement", "achieved", "in space"])
def test_goals_are_stored_as_plain_data(kind):
    data = json.loads(json.dumps(goals_to_dict(SETS[kind])))
    assert goals_from_dict(data) == SETS[kind]


def test_goals_of_a_flattened_dictionary_are_those_of_its_parts():
    """Of a GoalEnv whose parts have other sizes."""
    parts = {"observation": 4, "achieved_goal": 2, "desired_goal": 2}
    space = gym.spaces.Dict({name: gym.spaces.Box(-1, 1, (size,), np.float32) for name, size in parts.items()})
    space.seed(0)
    goals, sample = dict_goals(space), space.sample()
    flat = gym.spaces.flatten(space, sample)
    np.testing.assert_array_equal(goals.extract(flat), sample["achieved_goal"] - sample["desired_goal"])
    aimed = gym.spaces.unflatten(space, goals.relabel(flat[None], np.float32([[0.5, -0.25]]))[0])
    np.testing.assert_allclose(aimed["desired_goal"], sample["desired_goal"] + [0.5, -0.25])
    for name in ("observation", "achieved_goal"):
        np.testing.assert_array_equal(aimed[name], sample[name])
    with pytest.raises(ValueError, match="not the observation space of a GoalEnv"):
        dict_goals(gym.spaces.Box(-1, 1, (3,)))


@pytest.mark.parametrize(
    "settings, said",
    [
        ({}, "given by displacement=, or by achieved= and desired="),
        ({"achieved": slice(0, 2)}, "given by displacement=, or by achieved= and desired="),
        ({"displacement": slice(0, 2), "achieved": slice(0, 2), "desired": slice(2, 4)}, "given by displacement="),
        ({"achieved": slice(0, 2), "desired": slice(2, 5)}, "columns 0:2, 2:5 do not fit"),
        ({"displacement": slice(4, 7)}, "columns 4:7 do not fit each other and an observation of 6 numbers"),
        ({"displacement": slice(0, 2), "position": slice(2, 3)}, "position 2:3 does not fit goals of 2 numbers"),
        (
            {"displacement": slice(0, 3), "position": slice(2, 5)},
            "position 2:5 does not fit goals of 3 numbers; it counts",
        ),
        ({"displacement": slice(0, 2), "scale": (1.0, 1.0, 1.0)}, "do not fit goals of 2 numbers"),
        ({"displacement": slice(0, 2), "scale": 0.0}, "scale is 0.0; give a length above 0"),
        ({"displacement": slice(0, 2), "scale": float("inf")}, "scale is inf"),
        ({"displacement": slice(0, 4, 2)}, "slices of whole numbers from 0 on without a step"),
        ({"displacement": slice(-2, None)}, "slices of whole numbers from 0 on without a step"),
        ({"achieved": slice(0, 2), "desired": slice(1, 3)}, "columns 0:2, 1:3 do not fit"),
    ],
)
def test_columns_that_are_no_goals_are_named(settings, said):
    with pytest.raises(ValueError, match=said):
        BoxGoals(6, **settings)


@pytest.mark.untyped
@pytest.mark.parametrize("data", [5, {}, {"kind": "box"}, {"kind": "cloud", "dims": 0}, {"kind": "cloud", "dims": "a"}])
def test_data_that_are_no_goals_are_refused(data):
    with pytest.raises(ValueError, match=r"goals|dims"):
        goals_from_dict(data)
