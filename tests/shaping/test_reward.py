"""The shaped reward telescopes; the learner's discount is annealed from 0 to γ."""

import numpy as np
import pytest
import torch

from shaping import linear_annealing, shaped_reward

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
