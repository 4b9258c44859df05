"""Potential-based reward shaping: the shaped reward and the bounds of its values."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from torch import Tensor

ValueT = TypeVar("ValueT", float, np.ndarray, Tensor)


def shaped_reward(reward: ValueT, potential: ValueT, next_potential: ValueT, gamma: float) -> ValueT:
    """Return the shaped reward of transitions s → s′.

    r̄ = r + γ Φ(s′) − Φ(s)                                        (paper, eq. reshaped_reward)

    Shaped returns telescope, Σ γ^t r̄_t = Σ γ^t r_t + γ^T Φ(s_T) − Φ(s_0), so a policy can change only the potential of
    the last state. An episode that is truncated by a time limit has not ended: pass the ordinary Φ(s′) and bootstrap.
    In the goal set, Φ is a constant c. Entering it then earns 1 + γc, so a reward that is 1 on entering and 0 elsewhere
    keeps its optimal policies for any c ≥ 0. A reward with other terms, such as a cost per step, keeps them for c = 0.

    Args:
        reward: Reward r [1], any shape.
        potential: Φ(s) [1], broadcast against `reward`.
        next_potential: Φ(s′) [1], same shape as `potential`.
        gamma: Discount γ of the task; it is constant while the learner's discount is annealed.
    """
    return reward + gamma * next_potential - potential


def value_bounds(gamma: float, largest: float, terminal: float, reward: float = 1.0) -> tuple[float, float]:
    """Return lower and upper bound of the shaped value of any state under any policy.

    For a reward that is `reward` ≥ 0 on entering the goal set and 0 elsewhere, and 0 ≤ Φ ≤ `largest` outside it, the
    shaped return under the learner's discount γ̄ ≤ γ is

    V̄(s) = −Φ(s) + Σ_{t<T−1} γ̄^t (γ − γ̄) Φ(s_{t+1}) + γ̄^{T−1} (r + γ `terminal`),

    where the weights of the potentials sum to at most γ (1 − γ̄^{T−1}). With γ̄ = γ and n steps to the goal set it is
    γ^{n−1} r + γ^n `terminal` − Φ(s), which for a good policy exceeds 1 where Φ(s) is small.

    Args:
        gamma: Discount γ, in [0, 1].
        largest: Upper bound of Φ outside the goal set, at least 0.
        terminal: Φ on the goal set.
        reward: Reward r on entering the goal set.
    """
    return min(0.0, reward + gamma * terminal) - largest, max(gamma * largest, reward + gamma * terminal)
