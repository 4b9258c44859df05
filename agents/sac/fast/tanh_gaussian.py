"""Samples of the tanh-Gaussian policy, and the gradient through them without autograd."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from shaping.value import LOG_STD_RANGE

EPSILON = 1e-6  # ε in log(1 − a² + ε), as in Stable-Baselines3


class Draw(NamedTuple):
    """Actions a = tanh(mean + exp(log std) · noise) with the quantities for their gradient."""

    actions: Float[Tensor, "batch action"]
    log_prob: Float[Tensor, "batch 1"]
    raw_log_std: Float[Tensor, "batch action"]  # before clamping
    noise: Float[Tensor, "batch action"]
    rest: Float[Tensor, "batch action"]  # 1 − a²


def draw(outputs: Float[Tensor, "rows twice_action"], size: int) -> list[Draw]:
    """Draw actions for each group of `size` rows of the actor's outputs, with the same noise as separate passes.

    log π(a) = Σ [−½ noise² − log std − ½ log 2π − log(1 − a² + ε)]
    """
    mean, raw = outputs.chunk(2, dim=1)
    log_std = raw.clamp(*LOG_STD_RANGE)
    noise = torch.cat([torch.randn_like(part) for part in mean.split(size)])
    actions = torch.addcmul(mean, log_std.exp(), noise).tanh_()
    rest = 1 - actions.square()
    density = (rest + EPSILON).log_().add_(log_std).addcmul_(noise, noise, value=0.5)
    log_prob = -0.5 * math.log(2 * math.pi) * mean.shape[1] - density.sum(dim=1, keepdim=True)
    parts = (x.split(size) for x in (actions, log_prob, raw, noise, rest))
    return [Draw(*part) for part in zip(*parts, strict=True)]


def through_draw(
    drawn: Draw, value_slope: Float[Tensor, "batch action"], weight: Tensor
) -> Float[Tensor, "batch twice_action"]:
    """Return the gradient of weight · log π(a) + value term with respect to the actor's outputs.

    ∂L/∂a = weight · 2a / (1 − a² + ε) + value_slope, ∂a/∂mean = 1 − a², ∂(−log std)/∂(log std) = −1
    """
    slope = torch.addcmul(value_slope, drawn.actions / (drawn.rest + EPSILON), 2 * weight).mul_(drawn.rest)
    log_std = drawn.raw_log_std.clamp(*LOG_STD_RANGE)
    inside = log_std == drawn.raw_log_std  # outside, the clamp has gradient 0
    return torch.cat([slope, (slope * log_std.exp()).mul_(drawn.noise).sub_(weight).mul_(inside)], dim=1)
