"""The potential Φ, computed from demonstrations and a goal-conditioned value estimator."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from shaping.demonstrated import DemonstratedGoals
from shaping.goals import GoalSet

Estimator = Callable[[Tensor], Tensor]

_FIRST_GOALS = 32  # goals per state in the first round; more would include goals that cannot be the maximum
_MAX_PAIRS = 128  # (state, goal) pairs per network call; the activations of their points still fit in the cache
_MAX_CELLS = 2**20  # entries of one state × goal table


class Potential:
    """Potential that estimates how soon the goal is reached by moving to a demonstrated state and following on.

    V_d^j(t) = γ^(H_j − t)                                                      (paper, eq. demo_reward)
    Φ^j(s)   = max_{t: s_t^j ∈ Δ(s)} [ V_d^j(t) ⊕ Ṽ_g(s; g(s_t^j)) ]            (eq. demo_pot)
    Φ(s)     = max_j Φ^j(s);  0 where Δ(s) is empty, `terminal` on the goal set (eq. sinle_pot)

    where ⊕ is the sum (the paper's choice) or the product, which is γ to the power of (steps to the demonstration +
    steps along it). Δ(s) is the set of demonstrated goals in the range of the estimator: at most `radius` away and with
    a value of at least `beta`. Ṽ_g is first clipped to [0, 1]. A step outside the goal set then earns γΦ(s′) ≤ 2γ,
    which is less than the 1 + γ earned by entering the goal set with `terminal` = 1.

    If `estimator` is a module, it is copied: training it afterwards does not change the potential.

    Args:
        estimator: Function of observations, shape (pairs, *shape), that returns values, shape (pairs,); usually a
            `ValueEstimator`.
        demonstrations: One array of observations per demonstration, shape (H_j + 1, *shape), the last in the goal set.
            Actions are not needed, and demonstrations may differ in their length H_j.
        goals: Goal set of the observations; defaults to that of the estimator.
        gamma: Discount γ of the task [1 per step]; defaults to that of the estimator, or 0.99 if it has none. It does
            not follow the learner's annealed discount.
        combine: "product" or "sum".
        radius: Largest distance to a demonstrated goal [m], or in units of the goals' scale. At distances beyond those
            of training, or across obstacles, estimated values are unreliable: inspect Φ before increasing it.
        beta: Smallest estimated value of a goal in Δ(s), in [0, 1].
        terminal: Φ on the goal set.
        spacing: Of goals closer than this to each other, only those of one demonstration are kept, the one with the
            most valuable goal (`DemonstratedGoals.in_order`) [m]; 0 keeps all. Has no effect with one demonstration.

    Raises:
        ValueError: An argument is out of range or does not match the estimator, or a demonstration is empty, has the
            wrong shape or is not finite.
    """

    def __init__(
        self,
        estimator: Estimator,
        demonstrations: Sequence[Float[np.ndarray, "_ ..."]],
        *,
        goals: GoalSet | None = None,
        gamma: float | None = None,
        combine: Literal["product", "sum"] = "product",
        radius: float = 0.08,
        beta: float = 0.0,
        terminal: float = 1.0,
        spacing: float = 0.005,
    ) -> None:
        counted = getattr(estimator, "gamma", None)  # the discount of the estimator's values
        gamma = (0.99 if counted is None else counted) if gamma is None else gamma
        _check_settings(gamma, combine, radius, beta, terminal, spacing)
        if counted is not None and gamma != counted:
            raise ValueError(
                f"gamma is {gamma}, but the estimator counts steps by {counted}; give that, or train it anew"
            )
        goals = goals or getattr(estimator, "goals", None)
        if goals is None:
            name = type(estimator).__name__
            raise ValueError(f"{name} has no goal set; pass goals=, such as BoxGoals(…)")
        shape = getattr(estimator, "in_shape", None)
        self.demonstrated = DemonstratedGoals(demonstrations, goals, gamma, shape)
        self.observation_shape = self.demonstrated.observation_shape
        self._order = self.demonstrated.in_order(spacing)
        if isinstance(estimator, nn.Module):
            estimator = copy.deepcopy(estimator).to("cpu", torch.float32).eval().requires_grad_(False)
        self.estimator = estimator
        self.goals = goals
        self.gamma = gamma
        self.combine = combine
        self.radius = radius
        self.beta = beta
        self.terminal = terminal
        self.spacing = spacing

    @property
    def largest(self) -> float:
        """Upper bound of Φ outside the goal set."""
        return 1.0 if self.combine == "product" else 2.0

    def __repr__(self) -> str:
        return (
            f"Potential({self.goals.name}, {len(self.demonstrated.starts) - 1} demonstrations, "
            f"combine={self.combine!r}, radius={self.radius}, beta={self.beta}, gamma={self.gamma}, "
            f"terminal={self.terminal}, spacing={self.spacing})"
        )

    def __call__(
        self, observations: Float[np.ndarray, "batch ..."], success: Bool[np.ndarray, " batch"] | None = None
    ) -> Float[np.ndarray, " batch"]:
        """Return Φ of every observation, and `terminal` where `success` is True.

        Args:
            observations: Observations, shape (batch, *shape).
            success: Whether each observation is in the goal set, shape (batch,); defaults to False.

        Returns:
            Φ, shape (batch,).

        Raises:
            ValueError: Observations have the wrong shape, or they or the estimator's values are not finite.
        """
        observations = self._checked(observations)
        count = len(observations)
        done = np.zeros(count, dtype=bool) if success is None else np.asarray(success, dtype=bool)
        if done.shape != (count,):
            raise ValueError(f"success has shape {done.shape}; give one flag per observation, ({count},)")
        potential = np.full(count, self.terminal, dtype=np.float32)
        if not done.all():
            potential[~done], _ = self._best(observations[~done])
        return potential

    def goal(
        self, observations: Float[np.ndarray, "batch ..."]
    ) -> tuple[Float[np.ndarray, "batch ..."], Bool[np.ndarray, " batch"]]:
        """Substitute in every observation the demonstrated goal that attains Φ, as the target of a guiding policy.

        If that is the last goal of a demonstration, the goal of the task is used instead. The last goal is known only
        to lie in the goal set, often at its boundary, and a policy that comes close to it need not enter the set.

        Returns:
            Observations with the goal substituted, shape (batch, *shape), and whether there is such a goal, shape
            (batch,); an observation without one is returned unchanged.
        """
        observations = self._checked(observations)
        _, chosen = self._best(observations)
        valid = chosen >= 0
        aimed, between = observations.copy(), valid & ~np.isin(chosen, self.demonstrated.starts[1:] - 1)
        aimed[between] -= self.demonstrated.shift[chosen[between]]
        return aimed, valid

    def explain(self, observation: Float[np.ndarray, "..."]) -> dict[str, Any]:
        """Return the terms of Φ of one observation, which is taken to be outside the goal set.

        Returns:
            "V_d", "V_g": one array (H_j + 1,) per demonstration; Ṽ_g is clipped to [0, 1] and also given outside Δ(s);
            "distance": likewise, from the puck to the demonstrated goal [m];
            "in_range": likewise, whether the demonstrated goal is in Δ(s);
            "chosen": (demonstration j, step t) of the maximum, or None;
            "potential": Φ, a float.
        """
        observations = self._checked(np.asarray(observation)[None])
        demonstrated = self.demonstrated
        distance = self.goals.distance(observations, demonstrated.goal)[0]
        everything = np.arange(len(demonstrated))
        value = self._values(observations, np.zeros_like(everything), everything)
        potential, chosen = self._best(observations)
        return {
            "V_d": demonstrated.split(demonstrated.value),
            "V_g": demonstrated.split(value),
            "distance": demonstrated.split(distance),
            "in_range": demonstrated.split((distance <= self.radius) & (value >= self.beta)),
            "chosen": demonstrated.locate(int(chosen[0])) if chosen[0] >= 0 else None,
            "potential": float(potential[0]),
        }

    def fingerprint(self) -> str:
        """Return the SHA-256 (hex) of everything Φ depends on: estimator, demonstrations and settings.

        Raises:
            TypeError: The estimator has no method `fingerprint()`.
        """
        estimator_fingerprint = getattr(self.estimator, "fingerprint", None)
        if estimator_fingerprint is None:
            raise TypeError(f"{type(self.estimator).__name__} has no fingerprint(); it cannot be identified")
        digest = hashlib.sha256(f"{self!r} {self.goals!r} {estimator_fingerprint()}".encode())
        digest.update(self.demonstrated.starts.tobytes())
        digest.update(np.ascontiguousarray(self.demonstrated.goal).tobytes())
        return digest.hexdigest()

    def _best(
        self, observations: Float[np.ndarray, "batch ..."]
    ) -> tuple[Float[np.ndarray, " batch"], Int[np.ndarray, " batch"]]:
        """Return Φ and the index of the goal that attains it; 0 and −1 where Δ(s) is empty."""
        potential = np.zeros(len(observations), dtype=np.float32)
        chosen = np.full(len(observations), -1, dtype=np.intp)
        size = max(1, _MAX_CELLS // len(self._order))
        for start in range(0, len(observations), size):
            part = slice(start, start + size)
            score = self._scores(observations[part])
            best, maximum = score.argmax(axis=1), score.max(axis=1)
            found = maximum > -np.inf
            potential[part] = np.where(found, maximum, 0.0)
            chosen[part] = np.where(found, self._order[best], -1)
        return potential, chosen

    def _scores(self, observations: Float[np.ndarray, "batch ..."]) -> Float[np.ndarray, "batch goals"]:
        """Return V_d ⊕ Ṽ_g, goals in `_order`; −∞ outside Δ(s) and where it cannot be the maximum of a row.

        The network dominates the cost, so it evaluates few pairs: only those in range, in descending order of V_d. A
        goal is skipped if its upper bound V_d ⊕ 1 is not above the current maximum of the row.
        """
        near = self.goals.distance(observations, self.demonstrated.goal[self._order]) <= self.radius
        demonstrated = self.demonstrated.value[self._order]
        score = np.full(near.shape, -np.inf, dtype=np.float32)
        goals_at_once = _FIRST_GOALS
        while near.any():
            rows, columns = (near & (near.cumsum(axis=1) <= goals_at_once)).nonzero()
            value = self._values(observations, rows, self._order[columns])
            joined = self._join(demonstrated[columns], value)
            score[rows, columns] = np.where(value >= self.beta, joined, -np.inf)
            near[rows, columns] = False
            near &= self._join(demonstrated, 1.0) > score.max(axis=1, keepdims=True)
            goals_at_once *= 2
        return score

    def _join(self, demonstrated: np.ndarray, value: np.ndarray | float) -> np.ndarray:
        """Return V_d ⊕ Ṽ_g."""
        return demonstrated * value if self.combine == "product" else demonstrated + value

    @torch.inference_mode()
    def _values(
        self,
        observations: Float[np.ndarray, "batch ..."],
        rows: Int[np.ndarray, " pairs"],
        columns: Int[np.ndarray, " pairs"],
    ) -> Float[np.ndarray, " pairs"]:
        """Return Ṽ_g ∈ [0, 1] of observation rows[i] with demonstrated goal columns[i] substituted."""
        value = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), _MAX_PAIRS):
            part = slice(start, start + _MAX_PAIRS)
            aimed = observations[rows[part]] - self.demonstrated.shift[columns[part]]
            value[part] = self.estimator(torch.from_numpy(aimed)).reshape(-1).numpy()
        # Checked before clipping, which would replace an infinite value by 1.
        finite = np.isfinite(value)
        if not finite.all():
            bad = int(np.flatnonzero(~finite)[0])
            raise ValueError(f"{self!r} is not finite: the estimator gave {value[bad]}; use another estimator")
        return value.clip(0.0, 1.0)

    def _checked(self, observations: Float[np.ndarray, "batch ..."]) -> Float[np.ndarray, "batch ..."]:
        """Return the observations as float32, after checking that they are finite and have the right shape."""
        observations = np.asarray(observations, dtype=np.float32)
        shape = observations.shape
        if observations.ndim == 0 or shape[1:] != self.observation_shape:
            wanted = ", ".join(map(str, self.observation_shape))
            raise ValueError(f"observations have shape {shape}; {self!r} takes (batch, {wanted})")
        if not np.isfinite(observations).all():
            bad = int(np.argwhere(~np.isfinite(observations))[0, 0])
            raise ValueError(f"{self!r} is not finite: observation {bad} of the batch is not")
        return observations


def _check_settings(gamma: float, combine: str, radius: float, beta: float, terminal: float, spacing: float) -> None:
    """Check that all settings are in their ranges, or raise ValueError."""
    if combine not in ("product", "sum"):
        raise ValueError(f"combine is {combine!r}; valid names: product, sum")
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma is {gamma}; give a discount in (0, 1]")
    if not radius > 0.0:
        raise ValueError(f"radius is {radius}; give a distance above 0 m")
    if not 0.0 <= beta <= 1.0:
        raise ValueError(f"beta is {beta}; give a value in [0, 1]")
    if not np.isfinite(terminal):
        raise ValueError(f"terminal is {terminal}; give a finite potential for the goal set")
    if not 0.0 <= spacing < np.inf:
        raise ValueError(f"spacing is {spacing}; give a distance of 0 m or more")
