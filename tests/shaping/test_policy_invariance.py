"""Shaping keeps the optimal policies: value iteration on small random MDPs (Ng, Harada and Russell, 1999)."""

import numpy as np
import pytest

from shaping import shaped_reward

GAMMA, STATES, ACTIONS = 0.95, 12, 4
GOAL = STATES - 1


def random_mdp(seed: int) -> np.ndarray:
    """Return P[s, a, s′]; the last two actions are the same, so that there are ties to keep."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(STATES, 0.15), size=(STATES, ACTIONS))
    transition[:, -1] = transition[:, -2]
    return transition


def action_values(transition: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Return Q*[s, a] of non-goal states by value iteration, for reward[s, s′]; entering the goal ends an episode."""
    alive = np.arange(STATES) != GOAL
    value = np.zeros(STATES)
    for _ in range(2000):
        q = np.einsum("sat,st->sa", transition, reward + GAMMA * np.where(alive, value, 0.0))
        value = q.max(axis=1)
    return q[:GOAL]


def optimal(q: np.ndarray) -> np.ndarray:
    return q >= q.max(axis=1, keepdims=True) - 1e-9


def entering(cost: float = 0.0) -> np.ndarray:
    reward = np.full((STATES, STATES), -cost)
    reward[:, GOAL] += 1.0
    return reward


@pytest.mark.parametrize("constant", [0.0, 1.0, 3.7])
@pytest.mark.parametrize("seed", range(5))
def test_sparse_reward_keeps_its_optimal_policies(seed, constant):
    """Any Φ, any constant c ≥ 0 on the goal set: Q̄* = (1 + γc) Q* − Φ(s)."""
    transition = random_mdp(seed)
    potential = np.random.default_rng(seed + 100).uniform(0.0, 2.0, STATES)
    potential[GOAL] = constant
    q = action_values(transition, entering())
    shaped = action_values(transition, shaped_reward(entering(), potential[:, None], potential[None, :], GAMMA))
    np.testing.assert_allclose(shaped, (1.0 + GAMMA * constant) * q - potential[:GOAL, None], atol=1e-9)
    np.testing.assert_array_equal(optimal(shaped), optimal(q))
    assert (optimal(q).sum(axis=1) == 1).any() and (optimal(q).sum(axis=1) > 1).any(), "unique optima and ties"


@pytest.mark.parametrize("seed", range(5))
def test_any_reward_keeps_its_optimal_policies_with_zero_on_the_goal_set(seed):
    transition, rng = random_mdp(seed), np.random.default_rng(seed + 100)
    reward, potential = rng.normal(size=(STATES, STATES)), rng.uniform(0.0, 2.0, STATES)
    potential[GOAL] = 0.0
    q = action_values(transition, reward)
    shaped = action_values(transition, shaped_reward(reward, potential[:, None], potential[None, :], GAMMA))
    np.testing.assert_array_equal(optimal(shaped), optimal(q))


def test_a_reward_that_makes_the_goal_unattractive_needs_zero_there():
    """Entering costs 0.5: never enter. A constant of 1 on the goal set would pay for it."""
    transition = np.zeros((STATES, 2, STATES))
    transition[:, 0, 0] = transition[:, 1, GOAL] = 1.0
    reward = entering() * -0.5
    policies = []
    for constant in (0.0, 1.0):
        potential = np.where(np.arange(STATES) == GOAL, constant, 0.3)
        shaped = shaped_reward(reward, potential[:, None], potential[None, :], GAMMA)
        policies.append(action_values(transition, shaped).argmax(axis=1))
    assert (action_values(transition, reward).argmax(axis=1) == 0).all()
    assert (policies[0] == 0).all() and (policies[1] == 1).all()


def test_a_time_limit_taken_for_the_goal_changes_the_optimal_policies():
    """The bonus of the goal set, paid for running into a time limit next door, is what a policy would then seek."""
    transition = np.zeros((STATES, 2, STATES))
    transition[:, 0, 0] = transition[:, 1, GOAL] = 1.0
    potential = np.zeros(STATES)
    potential[GOAL] = 1.0
    wrongly_paid = entering() + GAMMA * (np.arange(STATES) == 0)[None, :]  # Φ(s′) = 1 at every cut
    assert (action_values(transition, entering()).argmax(axis=1) == 1).all()
    assert (action_values(transition, wrongly_paid).argmax(axis=1) == 0).all()
