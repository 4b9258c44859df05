"""Encoder without parameters, for flat observations of order 1."""

from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import check_shape
from perception.registry import register_encoder


@register_encoder("identity")
class Identity(nn.Module):
    """Return a flat observation, multiplied by a constant.

    Args:
        in_shape: ``(numbers,)``.
        out_features: Ignored; the number of features is that of the inputs.
        scale: Factor that brings the inputs to order 1.
    """

    def __init__(self, in_shape: tuple[int, ...], out_features: int = 0, scale: float = 1.0) -> None:
        super().__init__()
        check_shape("identity", in_shape, "(numbers,)", len(in_shape) == 1)
        self.out_features, self.scale = in_shape[0], scale

    def forward(self, observation: Float[Tensor, "batch numbers"]) -> Float[Tensor, "batch numbers"]:
        """Return the scaled observations."""
        return self.scale * observation
