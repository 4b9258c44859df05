"""Encoder of state observations, which only scales them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, VELOCITY_SCALE, check_shape
from perception.registry import register_encoder


@register_encoder("state")
class StateEncoder(nn.Module):
    """Scale [s_PE, v_PE, s_PG, v_PG] by [10, 5, 10, 5] [1/m, s/m]; there are no learned parameters.

    Args:
        in_shape: ``(8,)``.
        out_features: Ignored; the number of features equals that of the inputs, 8.
    """

    scale: Tensor

    def __init__(self, in_shape: tuple[int, ...], out_features: int = 8) -> None:
        super().__init__()
        check_shape("state", in_shape, "(8,)", tuple(in_shape) == (8,))
        self.out_features = in_shape[0]
        pair = [POSITION_SCALE] * 2 + [VELOCITY_SCALE] * 2
        self.register_buffer("scale", torch.tensor(pair * 2), persistent=False)

    def forward(self, observation: Float[Tensor, "batch 8"]) -> Float[Tensor, "batch 8"]:
        """Return the scaled observations."""
        return observation * self.scale
