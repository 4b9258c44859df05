"""What a potential does not accept is named in one line."""

import numpy as np
import pytest
import torch

from shaping import Potential, ValueEstimator, make_goals


def shown(kind: str, count: int) -> np.ndarray:
    shape = (count, 8) if kind == "state" else (count, 20, 4)
    return np.random.default_rng(0).normal(0.0, 0.05, shape).astype(np.float32)


class Half:
    """An estimator that says 0.5 everywhere."""

    def __init__(self, kind: str = "state"):
        self.goals = make_goals(kind)

    def __call__(self, observation):
        return torch.full((len(observation),), 0.5)


def with_value_at(index, value):
    demonstration = shown("state", 10)
    demonstration[index] = value
    return demonstration


WRONG_DEMONSTRATIONS = {
    "not finite, arm": (with_value_at((4, 0), np.nan), "demonstration 1: step 4 is not finite"),
    "not finite, puck": (with_value_at((9, 7), np.inf), "demonstration 1: step 9 is not finite"),
    "a cloud": (shown("pointcloud", 10), r"demonstration 1: shape \(10, 20, 4\); state .*\(steps, 8\)"),
    "one observation": (shown("state", 1)[0], r"demonstration 1: shape \(8,\)"),
    "empty": (np.zeros((0, 8)), r"demonstration 1: shape \(0, 8\)"),
    "goals only": (np.zeros((5, 4)), r"demonstration 1: shape \(5, 4\)"),
    "words": ([["a"] * 8], "demonstration 1: not an array of numbers"),
    "ragged": ([[0.0] * 8, [0.0]], "demonstration 1: not an array of numbers"),
}


@pytest.mark.untyped
@pytest.mark.parametrize("wrong", WRONG_DEMONSTRATIONS)
def test_a_wrong_demonstration_is_one_line(wrong):
    demonstration, message = WRONG_DEMONSTRATIONS[wrong]
    with pytest.raises(ValueError, match=message) as error:
        Potential(ValueEstimator("state", "state"), [shown("state", 10), demonstration])
    assert "\n" not in str(error.value)


def test_clouds_of_another_size_than_the_first_are_refused():
    few = shown("pointcloud", 10)[:, :15]
    assert Potential(Half("pointcloud"), [few]).observation_shape == (15, 4)
    with pytest.raises(ValueError, match=r"demonstration 1: shape \(10, 15, 4\)"):
        Potential(Half("pointcloud"), [shown("pointcloud", 10), few])
    with pytest.raises(ValueError, match=r"demonstration 0: shape \(10, 15, 4\)"):
        Potential(ValueEstimator("pointcloud", "pointnet"), [few])


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"combine": "max"}, "'max'; valid names: product, sum"),
        ({"radius": 0.0}, "radius is 0.0"),
        ({"beta": 1.5}, "beta is 1.5"),
        ({"gamma": 0.0}, "gamma is 0.0"),
        ({"terminal": float("nan")}, "terminal is nan"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        Potential(Half(), [shown("state", 10)], **settings)


@pytest.mark.untyped
def test_missing_parts_are_named():
    with pytest.raises(ValueError, match="no demonstrations"):
        Potential(Half(), [])
    with pytest.raises(ValueError, match="no goal set"):
        Potential(lambda observation: observation[:, 0], [shown("state", 10)])
    potential = Potential(Half(), [shown("state", 10)])
    with pytest.raises(ValueError, match=r"shape \(8,\).*\(batch, 8\)"):
        potential(np.zeros(8))
    with pytest.raises(ValueError, match="one flag per observation"):
        potential(np.zeros((2, 8)), np.array([True]))


def test_the_discount_is_the_estimators():
    estimator = ValueEstimator("state", "state", gamma=0.9)
    assert Potential(estimator, [shown("state", 3)]).gamma == 0.9
    with pytest.raises(ValueError, match=r"gamma is 0.99, but the estimator counts steps by 0.9"):
        Potential(estimator, [shown("state", 3)], gamma=0.99)
    with pytest.raises(ValueError, match=r"gamma is 1.7; give a discount in \(0, 1\]"):
        ValueEstimator("state", "state", gamma=1.7)
