"""Guided steps: the goal policy of the prior acts towards the demonstrated state that Φ selects."""

from typing import Any

import numpy as np
import torch

from shaping.potential import Potential
from shaping.value import ValueEstimator


class Guide:
    """Guide that replaces the agent's action by that of the prior's goal policy in a random share of training steps.

    The paper names goal-conditioned controllers for exploration as future work (sec. 6, after Nasiriany et al. 2019).
    Guided transitions are stored in the replay buffer like all others. The agent's own policy acts if no demonstration
    is in range or the puck is not visible.

    Args:
        potential: Potential Φ, which selects the demonstrated state to aim at.
        estimator: Estimator with the goal policy (`act`).
        share: Probability of a guided step, in [0, 1].
        noise: Standard deviation of the Gaussian noise on guided actions.
        seed: Seed of the guide's random generator.
        decay: Environment steps between which the share falls linearly to 0; None keeps it constant.

    Raises:
        ValueError: `share` is not in [0, 1].
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
        """Return the share of guided steps after `step` environment steps."""
        if self.decay is None or step <= self.decay[0]:
            return self.share
        first, last = self.decay
        return self.share * max(0.0, (last - step) / (last - first)) if step < last else 0.0

    def get_state(self) -> dict[str, Any]:
        """Return the random state as plain data for a checkpoint."""
        return {"rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        self.rng.bit_generator.state = state["rng"]

    @torch.inference_mode()
    def __call__(self, observations: np.ndarray, visible: np.ndarray, step: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return guided actions.

        Args:
            observations: Observations of all environments, shape (envs, ...).
            visible: Whether the puck is visible, shape (envs,).
            step: Environment steps so far.

        Returns:
            Actions (envs, 2) in [−1, 1], the scaled action space of Stable-Baselines3's replay buffer, and a mask of
            the environments in which they replace the agent's actions (envs,).
        """
        guided = (self.rng.random(len(observations)) < self.share_at(step)) & visible
        if not guided.any():
            return np.zeros((len(observations), self.estimator.action_dim), np.float32), guided
        aimed, valid = self.potential.goal(observations)
        actions = self.estimator.act(torch.from_numpy(aimed)).numpy()
        noisy = actions + self.noise * self.rng.standard_normal(actions.shape)
        return noisy.clip(-1.0, 1.0).astype(np.float32), guided & valid
