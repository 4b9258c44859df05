"""PWIL: the reward is computed at collection from the transport distance between an episode and the demonstrations."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from agents.imitation.expert import Embedding, Pairs
from agents.replay.rewards import Rows

SCALE, BANDWIDTH, MARGIN = 5.0, 5.0, 1e-6


class PWIL:
    """Reward α exp(−β T/√d · cost) of a step, where the cost is that of moving it to the nearest demonstrated pairs.

    Demonstrated pairs (atoms) are standardised and have weight 1/N each. A step has weight 1/T and consumes the nearest
    atoms greedily; all atoms are restored when an episode ends (Dadashi et al. 2021, "Primal Wasserstein imitation
    learning"). The absorbing state has no reward, as in the reference implementation.

    Args:
        expert: Demonstrated pairs; those of absorbing states are left out.
        embedding: Features of observations.
        horizon: Maximum number of steps T of an episode.
        num_envs: Number of environments.
    """

    def __init__(self, expert: Pairs, embedding: Embedding, horizon: int, num_envs: int = 1) -> None:
        kept = expert.features[:, -1] == 0
        atoms = torch.cat([expert.features[kept, :-1], expert.actions[kept]], dim=1).cpu().double().numpy()
        deviation = atoms.std(axis=0, ddof=1)
        self.mean, self.deviation = atoms.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
        self.atoms, self.embedding, self.horizon = (atoms - self.mean) / self.deviation, embedding, horizon
        self.bandwidth = BANDWIDTH * horizon / np.sqrt(atoms.shape[1])
        self.weights = np.full((num_envs, len(atoms)), 1.0 / len(atoms))

    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return the rewards that were computed at collection."""
        return rows.task_rewards

    def collect(
        self, observations: np.ndarray, actions: np.ndarray, dones: np.ndarray
    ) -> Float[np.ndarray, " environments"]:
        """Return the rewards of one step of every environment.

        Args:
            observations: Observations s (environments, …).
            actions: Actions in [−1, 1] (environments, A).
            dones: Whether the step ends the episode (environments,).
        """
        features = self.embedding(observations)[:, :-1].cpu().numpy()
        steps = (np.concatenate([features, actions], axis=1) - self.mean) / self.deviation
        rewards = np.zeros(len(steps), np.float32)
        for index, step in enumerate(steps):
            distances = np.linalg.norm(self.atoms - step, axis=1)
            cost = consume(self.weights[index], distances, 1.0 / self.horizon - MARGIN)
            rewards[index] = SCALE * np.exp(-self.bandwidth * cost)
        self.weights[np.asarray(dones, bool)] = 1.0 / len(self.atoms)
        return rewards

    def get_state(self) -> dict[str, Any]:
        """Return the weights of the atoms that are left, for checkpoints."""
        return {"weights": self.weights.copy()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        self.weights = np.array(state["weights"])


def consume(weights: Float[np.ndarray, " atoms"], distances: Float[np.ndarray, " atoms"], amount: float) -> float:
    """Take `amount` of weight from the nearest atoms that have some left, and return Σ weight · distance.

    Args:
        weights: Weights that are left, reduced in place.
        distances: Distances of the atoms.
        amount: Weight to take; less is taken if no more is left.
    """
    cost = 0.0
    for atom in np.argsort(distances, kind="stable"):
        taken = min(weights[atom], amount)
        weights[atom] -= taken
        cost += taken * distances[atom]
        amount -= taken
        if amount <= 0:
            break
    return cost
