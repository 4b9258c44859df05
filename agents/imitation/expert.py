"""Demonstrated and sampled transitions as inputs of the baselines' networks and distances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from agents.replay.rewards import Rows


class Embedding:
    """Features of a fixed encoder with an indicator of the absorbing state.

    Args:
        encoder: Encoder, observations (B, …) → features (B, F); its weights are not trained.
        device: Device of the encoder and of the features.
    """

    def __init__(self, encoder: nn.Module, device: torch.device) -> None:
        self.encoder, self.device = encoder.to(device).eval(), device

    @torch.no_grad()
    def __call__(self, observations: Float[np.ndarray, "batch ..."]) -> Float[Tensor, "batch features+1"]:
        """Return the features of observations and the indicator 0."""
        return _indicated(self.encoder(torch.as_tensor(observations, device=self.device)).flatten(1))

    def rows(self, rows: Rows) -> Float[Tensor, "batch features+1"]:
        """Return the features of sampled rows, those stored with them if there are any, and the indicator 0."""
        stored = rows.features
        return self(rows.observations) if stored is None else _indicated(torch.as_tensor(stored, device=self.device))


@dataclass(frozen=True)
class Pairs:
    """Features and actions of transitions.

    Attributes:
        features: Features and the indicator of the absorbing state (N, F + 1).
        actions: Actions in [−1, 1], 0 in the absorbing state (N, A).
    """

    features: Tensor
    actions: Tensor

    @property
    def joined(self) -> Float[Tensor, "pairs inputs"]:
        """Features, indicator and action of each pair (N, F + 1 + A)."""
        return torch.cat([self.features, self.actions], dim=1)

    def draw(self, count: int, generator: torch.Generator) -> "Pairs":
        """Draw pairs uniformly with replacement, so that there may be fewer than drawn."""
        index = torch.randint(len(self.actions), (count,), generator=generator).to(self.actions.device)
        return Pairs(self.features[index], self.actions[index])

    def absorbing(self, count: int = 1) -> "Pairs":
        """Return `count` pairs of the absorbing state."""
        state = torch.zeros_like(self.features[:1])
        state[:, -1] = 1.0
        return Pairs(state.repeat(count, 1), torch.zeros_like(self.actions[:1]).repeat(count, 1))

    def followed_by_absorbing(self, terminal: np.ndarray) -> "Pairs":
        """Append a pair of the absorbing state for every terminal transition; `terminal` has shape (N,)."""
        end = self.absorbing(int(np.sum(terminal)))
        return Pairs(torch.cat([self.features, end.features]), torch.cat([self.actions, end.actions]))


def pairs_of(rows: Rows, embedding: Embedding) -> Pairs:
    """Return the pairs of sampled rows."""
    return Pairs(embedding.rows(rows), torch.as_tensor(rows.actions, device=embedding.device))


def expert_pairs(demonstrations: Any, embedding: Embedding) -> Pairs:
    """Return the pairs of all demonstrated transitions, the absorbing state of each demonstration included.

    Args:
        demonstrations: `ShapedReplayBuffer` of the demonstrated transitions.
        embedding: Features of observations.
    """
    size = demonstrations.size()
    rows = Rows(demonstrations, np.arange(size), np.zeros(size, int))
    return pairs_of(rows, embedding).followed_by_absorbing(rows.terminal)


def with_absorbing(
    rewards: Float[np.ndarray, " batch"], terminal: np.ndarray, absorbing: Any, gamma: float
) -> Float[np.ndarray, " batch"]:
    """Add the value of the absorbing state to the rewards of terminal transitions: r + γ/(1 − γ)·r_absorbing.

    Args:
        rewards: Rewards (B,).
        terminal: Whether each transition is terminal (B,).
        absorbing: Reward of the absorbing state, a number or (B,).
        gamma: Discount γ of the learner, below 1.
    """
    return (rewards + terminal * gamma / (1.0 - gamma) * absorbing).astype(np.float32)


def _indicated(features: Tensor) -> Tensor:
    return torch.cat([features, features.new_zeros(len(features), 1)], dim=1)
