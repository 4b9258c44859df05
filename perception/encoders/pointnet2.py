"""PointNet++ encoder: a PointNet in the neighbourhood of every point, then one over all neighbourhoods."""

from collections.abc import Sequence

import torch
from einops import rearrange, reduce
from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, check_shape
from perception.encoders.geometric import MLP, PointNetConv
from perception.registry import register_encoder


@register_encoder("pointnet2")
class PointNet2(nn.Module):
    """Encode a set of points by its neighbourhoods; the features do not depend on order or repetition of the points.

    y_i = max_{j: |p_j − p_i| ≤ r} h(10 (p_j − p_i)),  f = LayerNorm(W · max_i g(10 p_i, y_i) + b), where h and g are
    multilayer perceptrons (Qi et al., PointNet++, NeurIPS 2017, sec. 3.2: two set abstraction levels).

    Every point is the centre of a neighbourhood. The paper samples the centres, which few points do not need, and which
    would depend on the order where points are equally far. The distance is that over all channels; it does not change
    if a cloud is moved, whatever its points are relative to.

    Args:
        in_shape: ``(points, channels)``.
        out_features: Number of features.
        radius: Radius r of a neighbourhood, over all channels [m]. In the puck's clouds, whose points are relative to
            two positions, it is 1.4 times the distance in the plane; a neighbourhood then holds about 6 of 20 points.
        local: Widths of the layers of h.
        hidden: Width of g.
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        out_features: int = 64,
        radius: float = 0.03,
        local: Sequence[int] = (32, 64),
        hidden: int = 128,
    ) -> None:
        super().__init__()
        check_shape("pointnet2", in_shape, "(points, channels)", len(in_shape) == 2)
        self.out_features, self.radius = out_features, radius
        # With a few neighbours for each point, PyG's sparse layer takes half the time of dense pairs of points.
        self.local = PointNetConv(MLP([in_shape[-1], *local], norm=None), add_self_loops=False)
        self.all = nn.Linear(in_shape[-1] + local[-1], hidden)
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(hidden, out_features), nn.LayerNorm(out_features))

    def forward(self, observation: Float[Tensor, "batch points channels"]) -> Float[Tensor, "batch out_features"]:
        """Return the features of clouds [m]."""
        _, count, _ = observation.shape
        with torch.no_grad():
            apart = (observation[:, :, None] - observation[:, None]).square().sum(dim=-1)
            cloud, centre, near = (apart <= self.radius**2).nonzero(as_tuple=True)
        scaled = rearrange(observation * POSITION_SCALE, "batch points channels -> (batch points) channels")
        found = self.local(None, scaled, torch.stack([near, centre]) + count * cloud).relu()
        points = self.all(torch.cat([scaled, found], dim=-1))
        return self.project(reduce(points, "(batch points) features -> batch features", "max", points=count))
