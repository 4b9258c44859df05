"""Multilayer perceptron on the flattened cloud, as a baseline that depends on the order of the points."""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, check_shape
from perception.encoders.geometric import MLP
from perception.registry import register_encoder


@register_encoder("mlp")
class FlatMLP(nn.Module):
    """Encode the flattened cloud by a multilayer perceptron; the features depend on the order of the points.

    Args:
        in_shape: ``(points, channels)``.
        out_features: Number of features.
        hidden: Width of the hidden layer.
    """

    def __init__(self, in_shape: tuple[int, ...], out_features: int = 64, hidden: int = 128) -> None:
        super().__init__()
        check_shape("mlp", in_shape, "(points, channels)", len(in_shape) == 2)
        self.out_features = out_features
        self.layers = MLP([in_shape[0] * in_shape[1], hidden, out_features], norm=None, plain_last=False)

    def forward(self, observation: Float[Tensor, "batch points channels"]) -> Float[Tensor, "batch out_features"]:
        """Return the features of clouds [m]."""
        return self.layers(rearrange(observation, "batch points channels -> batch (points channels)") * POSITION_SCALE)
