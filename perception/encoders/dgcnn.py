"""DGCNN encoder: edge convolutions over the nearest neighbours, which are found anew in the features of each layer."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, check_shape
from perception.registry import register_encoder

TILT = 1e-4  # weight of a point's place, beside its distance, in the choice of neighbours


@register_encoder("dgcnn")
class DGCNN(nn.Module):
    """Encode a set of points by edge convolutions; the features do not depend on the order of the points.

    x′_i = max_{j ∈ k nearest of i} ReLU(A x_i + B (x_j − x_i)) for each layer, beginning with x_i = 10 p_i;
    f = LayerNorm(W · ReLU(max_i V [x_i of all layers]) + b)  (Wang et al., Dynamic Graph CNN, TOG 2019, eq. 8).

    Each point is among its own neighbours. They are the nearest in the input of the layer, over all channels: of the
    first layer in space, which does not change if a cloud is moved, of the others in the features. Repeated points take
    the places of others among the neighbours, so that repetition changes the features.

    Args:
        in_shape: ``(points, channels)``.
        out_features: Number of features.
        neighbours: Number k of neighbours; with fewer points, all of them.
        layers: Widths of the edge convolutions.
        hidden: Width of the layer shared by all points, V.
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        out_features: int = 64,
        neighbours: int = 6,
        layers: Sequence[int] = (64, 64),
        hidden: int = 128,
    ) -> None:
        super().__init__()
        check_shape("dgcnn", in_shape, "(points, channels)", len(in_shape) == 2)
        self.out_features, self.neighbours = out_features, neighbours
        # The edge function is linear before ReLU, so that A x_i + max_j B (x_j − x_i) is one product for each point
        # in place of each pair: half the time of PyG's EdgeConv.
        sizes = list(pairwise([in_shape[-1], *layers]))
        self.own = nn.ModuleList(nn.Linear(inputs, outputs) for inputs, outputs in sizes)
        self.difference = nn.ModuleList(nn.Linear(inputs, outputs, bias=False) for inputs, outputs in sizes)
        self.all = nn.Linear(sum(layers), hidden)
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(hidden, out_features), nn.LayerNorm(out_features))

    def forward(self, observation: Float[Tensor, "batch points channels"]) -> Float[Tensor, "batch out_features"]:
        """Return the features of clouds [m]."""
        x, found = observation * POSITION_SCALE, []
        for own, difference in zip(self.own, self.difference, strict=True):
            rows, moved = nearest(x, self.neighbours), difference(x)
            largest = moved.flatten(0, 1)[rows].amax(dim=2)
            x = (own(x) + largest - moved).relu()
            found.append(x)
        points = self.all(torch.cat(found, dim=-1))
        return self.project(reduce(points, "batch points features -> batch features", "max"))


@torch.no_grad()
def nearest(x: Float[Tensor, "batch points features"], count: int) -> Int[Tensor, "batch points neighbours"]:
    """Return the nearest points of each point in its own cloud, as rows of all points of the batch.

    Args:
        x: Clouds.
        count: Number of neighbours, the point itself among them; at most all points.
    """
    clouds, points, features = x.shape
    x = x - x.mean(dim=1, keepdim=True)  # far from the origin, squares round the differences off
    # |x_i − x_j|² without |x_i|², which is the same for all neighbours of i. Points of a pixel grid can be equally far;
    # then their place decides, and not their order.
    apart = x.square().sum(dim=-1) + x @ (TILT * torch.linspace(1.0, 2.0, features, device=x.device))
    apart = apart[:, None] - 2 * x @ x.transpose(1, 2)
    first = points * torch.arange(clouds, device=x.device)
    return apart.topk(min(count, points), largest=False).indices + first[:, None, None]
