"""Encoder without parameters that returns the centroid of the cloud, as a baseline."""

from einops import reduce
from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, check_shape
from perception.registry import register_encoder


@register_encoder("centroid")
class Centroid(nn.Module):
    """Average the points and scale the mean: 10 · (1/n) Σ_i p_i.

    Args:
        in_shape: ``(points, channels)``.
        out_features: Ignored; the number of features equals the number of channels.
    """

    def __init__(self, in_shape: tuple[int, ...], out_features: int = 4) -> None:
        super().__init__()
        check_shape("centroid", in_shape, "(points, channels)", len(in_shape) == 2)
        self.out_features = in_shape[-1]

    def forward(self, observation: Float[Tensor, "batch points channels"]) -> Float[Tensor, "batch channels"]:
        """Return the scaled centroids of clouds [m]."""
        return reduce(observation, "batch points channels -> batch channels", "mean") * POSITION_SCALE
