"""Exponential moving averages of weights."""

import torch
from torch import Tensor


class MovingAverage:
    """Move one module's weights towards another's: θ̄ ← θ̄ + τ (θ − θ̄).

    Buffers, as those of batch normalisation, are copied, as Stable-Baselines3 does with its target networks.

    Args:
        average: θ̄; its parameters are listed now, as are the other's.
        online: θ, of the same layers.
        tau: τ in (0, 1].
    """

    def __init__(self, average: torch.nn.Module, online: torch.nn.Module, tau: float) -> None:
        self.average: list[Tensor] = list(average.parameters())
        self.online: list[Tensor] = list(online.parameters())
        self.buffers = list(zip(average.buffers(), online.buffers(), strict=True))
        self.tau = tau

    @torch.no_grad()
    def step(self) -> None:
        """Move the average once."""
        torch._foreach_lerp_(self.average, self.online, self.tau)
        for average, online in self.buffers:
            average.copy_(online)
