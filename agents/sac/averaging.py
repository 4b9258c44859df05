"""Exponential moving averages of weights."""

import torch
from torch import Tensor


class MovingAverage:
    """Exponential moving average of a module's weights: θ̄ ← θ̄ + τ (θ − θ̄).

    Buffers, such as those of batch normalisation, are copied, as in Stable-Baselines3's target networks.

    Args:
        average: Module with the weights θ̄; parameters that are replaced later are not updated.
        online: Module with the weights θ and the same layers.
        tau: Rate τ in (0, 1].
    """

    def __init__(self, average: torch.nn.Module, online: torch.nn.Module, tau: float) -> None:
        self.average: list[Tensor] = list(average.parameters())
        self.online: list[Tensor] = list(online.parameters())
        self.buffers = list(zip(average.buffers(), online.buffers(), strict=True))
        self.tau = tau

    @torch.no_grad()
    def step(self) -> None:
        """Update the average once."""
        torch._foreach_lerp_(self.average, self.online, self.tau)
        for average, online in self.buffers:
            average.copy_(online)
