"""The shaped reward telescopes; the learner's discount is annealed from 0 to γ."""

import numpy as np
import pytest
import torch

from shaping import linear_annealing, shaped_reward
from shaping.reward import value_bounds

GAMMA = 0.99


def test_shaped_returns_telescope():
    rng = np.random.default_rng(0)
    reward, potential = rng.normal(size=50), rng.normal(size=51)
    discount = GAMMA ** np.arange(51)
    shaped = discount[:50] @ shaped_reward(reward, potential[:-1], potential[1:], GAMMA)
    expected = discount[:50] @ reward + discount[50] * potential[50] - potential[0]
    assert shaped == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("constant", [-3.0, 0.5, 10.0])
def test_a_constant_changes_every_reward_by_the_same(constant):
    """Φ + c adds (γ − 1)c to the reward of every step that does not end the episode, whatever Φ."""
    rng = np.random.default_rng(1)
    reward, potential, following = rng.normal(size=(3, 40))
    change = shaped_reward(reward, potential + constant, following + constant, GAMMA) - shaped_reward(
        reward, potential, following, GAMMA
    )
    np.testing.assert_allclose(change, (GAMMA - 1.0) * constant, atol=1e-12)


def test_floats_arrays_and_tensors_agree():
    numbers = (1.0, 0.25, 0.75)
    expected = shaped_reward(*numbers, GAMMA)
    assert expected == pytest.approx(1.0 + GAMMA * 0.75 - 0.25)
    assert shaped_reward(*(np.array([x]) for x in numbers), GAMMA).item() == pytest.approx(expected)
    assert shaped_reward(*(torch.tensor([x]) for x in numbers), GAMMA).item() == pytest.approx(expected)


def test_annealing_ends():
    assert linear_annealing(0, 1000, GAMMA) == 0.0
    assert linear_annealing(1000, 1000, GAMMA) == GAMMA
    assert linear_annealing(10**9, 1000, GAMMA) == GAMMA
    assert linear_annealing(0, 0, GAMMA) == GAMMA, "no annealing: γ from the first step"


def test_annealing_is_linear_and_stays_below_gamma():
    discounts = np.array([linear_annealing(step, 1000, GAMMA) for step in range(1001)])
    np.testing.assert_allclose(np.diff(discounts), GAMMA / 1000, atol=1e-12)
    assert discounts.max() == GAMMA


@pytest.mark.parametrize("arguments", [(-1, 10, 0.9), (1, -10, 0.9), (1, 10, 1.1)])
def test_annealing_refuses_values_out_of_range(arguments):
    with pytest.raises(ValueError, match="give"):
        linear_annealing(*arguments)


def test_no_return_leaves_the_bounds_and_both_are_nearly_reached():
    """Over random potentials, lengths and learner's discounts γ̄ ≤ γ, ending in the goal set, in failure or never."""
    rng = np.random.default_rng(0)
    for largest, terminal in ((1.0, 1.0), (2.0, 1.0), (0.0, 0.0), (1.0, 0.0), (1.0, 3.0), (1.0, -2.0)):
        low, high = value_bounds(0.99, largest, terminal)
        returns = []
        for _ in range(2000):
            length, discount = rng.integers(1, 60), 0.99 * rng.random() ** rng.choice([0.1, 1, 10])
            potential = rng.choice([rng.random(length), rng.integers(0, 2, length).astype(float)]) * largest
            end, reward = ((terminal, 1.0), (0.0, 0.0), (potential[-1], 0.0))[rng.integers(3)]
            following = np.append(potential[1:], end)
            rewards = np.zeros(length)
            rewards[-1] = reward
            shaped = shaped_reward(rewards, potential, following, 0.99)
            returns.append(float(np.sum(discount ** np.arange(length) * shaped)))
        assert low - 1e-9 <= min(returns) and max(returns) <= high + 1e-9
        assert min(returns) < low + 0.05 and max(returns) > high - 0.05


def test_bounds_hold_the_value_of_following_the_demonstration():
    """γ^(n−1) + γ^n − Φ(s), which exceeds 1 where Φ(s) is small: a bound at 1 would cut it."""
    low, high = value_bounds(0.99, 1.0, 1.0)
    values = [0.99 ** (n - 1) + 0.99**n - 0.3 for n in range(1, 31)]
    assert max(values) > 1.5 and all(low < value < high for value in values)
