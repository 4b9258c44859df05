"""Guided steps: the prior's goal policy acts, towards the demonstrated state that Φ chose."""

from typing import Any

import numpy as np
import torch

from shaping.potential import Potential
from shaping.value import ValueEstimator


class Guide:
    """Take over a share of the training steps, drawn at each, with the goal policy learned beside Ṽ_g.

    The paper names goal-conditioned controllers for exploration as future work (sec. 6, after Nasiriany et al. 2019).
    Guided transitions enter the buffer like any other; the agent's own policy acts where no demonstration is in range
    and where the frame does not show the puck.

    Args:
        potential: Φ, which chooses the demonstrated state to aim at.
        estimator: Has the goal policy (`act`).
        share: Share of guided steps, in [0, 1].
        noise: Standard deviation of Gaussian noise on guided actions.
        seed: Seed of the guide's own generator.
        decay: Environment steps between which the share falls linearly to 0; None keeps it.
    """

    def __init__(
        self,
        potential: Potential,
        estimator: ValueEstimator,
        share: float,
        noise: float,
        seed: int,
        decay: tuple[int, int] | None = None,
    ) -> None:
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"the share of guided steps is {share}; it must lie between 0 and 1")
        self.potential, self.estimator, self.share, self.noise = potential, estimator, share, noise
        self.decay = decay
        self.rng = np.random.default_rng(seed)

    def share_at(self, step: int) -> float:
        """Share of guided steps after `step` environment steps."""
        if self.decay is None or step <= self.decay[0]:
            return self.share
        first, last = self.decay
        return self.share * max(0.0, (last - step) / (last - first)) if step < last else 0.0

    def get_state(self) -> dict[str, Any]:
        """Random state, as plain data for a checkpoint."""
        return {"rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""
        self.rng.bit_generator.state = state["rng"]

    @torch.inference_mode()
    def __call__(self, observations: np.ndarray, visible: np.ndarray, step: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Propose actions.

        Args:
            observations: Of every environment, shape (envs, ...).
            visible: Whether each shows the puck, shape (envs,).
            step: Environment steps taken so far.

        Returns:
            Actions (envs, 2) in [−1, 1], the scaled action space that Stable-Baselines3 stores, and where they apply
            (envs,).
        """
        guided = (self.rng.random(len(observations)) < self.share_at(step)) & visible
        if not guided.any():
            return np.zeros((len(observations), self.estimator.action_dim), np.float32), guided
        aimed, valid = self.potential.goal(observations)
        actions = self.estimator.act(torch.from_numpy(aimed)).numpy()
        noisy = actions + self.noise * self.rng.standard_normal(actions.shape)
        return noisy.clip(-1.0, 1.0).astype(np.float32), guided & valid
