"""Set Transformer encoder: attention between all points, then attention of one learned query to the points."""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, check_shape
from perception.encoders.geometric import PoolingByMultiheadAttention, SetAttentionBlock
from perception.registry import register_encoder


@register_encoder("set_transformer")
class SetTransformer(nn.Module):
    """Encode a set of points by attention; the features do not depend on the order of the points.

    f = LayerNorm(W · PMA(SAB(… 10 p_i …)) + b): set attention blocks, and pooling by attention with one seed
    (Lee et al., Set Transformer, ICML 2019, eq. 8 and 11).

    Attention is a weighted mean over the points. The features are the same if all points are repeated equally often;
    a point that is repeated more often than others counts more.

    Args:
        in_shape: ``(points, channels)``.
        out_features: Number of features.
        width: Width of the blocks.
        heads: Number of heads of an attention.
        blocks: Number of set attention blocks.
    """

    def __init__(
        self, in_shape: tuple[int, ...], out_features: int = 64, width: int = 64, heads: int = 4, blocks: int = 1
    ) -> None:
        super().__init__()
        check_shape("set_transformer", in_shape, "(points, channels)", len(in_shape) == 2)
        self.out_features = out_features
        self.embed = nn.Linear(in_shape[-1], width)
        self.attend = nn.Sequential(*(SetAttentionBlock(width, heads) for _ in range(blocks)))
        self.pool = PoolingByMultiheadAttention(width, num_seed_points=1, heads=heads)
        self.project = nn.Sequential(nn.Linear(width, out_features), nn.LayerNorm(out_features))

    def forward(self, observation: Float[Tensor, "batch points channels"]) -> Float[Tensor, "batch out_features"]:
        """Return the features of clouds [m]."""
        pooled = self.pool(self.attend(self.embed(observation * POSITION_SCALE)))
        return self.project(rearrange(pooled, "batch 1 features -> batch features"))
