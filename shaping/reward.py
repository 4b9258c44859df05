"""The scientific claim, at one glance: potential-based reward shaping."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from torch import Tensor

ValueT = TypeVar("ValueT", float, np.ndarray, Tensor)


def shaped_reward(reward: ValueT, potential: ValueT, next_potential: ValueT, gamma: float) -> ValueT:
    """Return the shaped reward of transitions s → s′.

    r̄ = r + γ Φ(s′) − Φ(s)                                        (paper, eq. reshaped_reward)

    Shaped returns telescope, Σ γ^t r̄_t = Σ γ^t r_t + γ^T Φ(s_T) − Φ(s_0): of all of Φ, a policy can change
    only what it is where the episode ends. An episode cut by a time limit did not end: pass the ordinary
    Φ(s′) and bootstrap. One that ends in the goal set ends with one constant c there. Entering then pays
    1 + γc, so a reward that is 1 on entering and 0 elsewhere keeps its optimal policies for any c ≥ 0. A
    reward with other terms, say a cost per step, keeps them for c = 0.

    Args:
        reward: r [1], any shape.
        potential: Φ(s) [1], broadcast against `reward`.
        next_potential: Φ(s′) [1], same shape as `potential`.
        gamma: γ, the task's discount; it stays where it is while the learner's own discount is annealed.
    """
    return reward + gamma * next_potential - potential


def value_bounds(gamma: float, largest: float, terminal: float, reward: float = 1.0) -> tuple[float, float]:
    """Return between which numbers the shaped value of any state, under any policy, lies.

    For a reward that is `reward` ≥ 0 on entering the goal set and 0 elsewhere, and 0 ≤ Φ ≤ `largest` outside it, the
    shaped return under the learner's discount γ̄ ≤ γ is

    V̄(s) = −Φ(s) + Σ_{t<T−1} γ̄^t (γ − γ̄) Φ(s_{t+1}) + γ̄^{T−1} (r + γ `terminal`),

    where the weights of the potentials sum to at most γ (1 − γ̄^{T−1}). With γ̄ = γ and n steps to go it is
    γ^{n−1} r + γ^n `terminal` − Φ(s): above 1 for a good policy wherever Φ(s) is small.

    Args:
        gamma: γ, in [0, 1].
        largest: largest Φ outside the goal set, at least 0.
        terminal: Φ on the goal set.
        reward: on entering the goal set.
    """
    return min(0.0, reward + gamma * terminal) - largest, max(gamma * largest, reward + gamma * terminal)
