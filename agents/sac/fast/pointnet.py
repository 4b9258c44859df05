"""Forward and backward passes of PointNet without autograd."""

from typing import Any, TypeGuard, cast

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from agents.sac.fast.linear import Layer, Scratch, as_integers, backward, through_relu_
from perception.encoders import POSITION_SCALE
from perception.encoders.geometric import Linear
from perception.encoders.pointnet import PointNet


def is_as_made(encoder: nn.Module) -> TypeGuard[PointNet]:
    """Return whether an encoder is a PointNet whose layers all have their original types."""
    if type(encoder) is not PointNet:
        return False
    shared, project = cast(Any, encoder.shared).lins, cast(Any, encoder.project)
    kinds = [Linear] * len(shared) + [nn.ReLU, nn.Linear, nn.LayerNorm]
    layers = [*shared, *project]
    return [type(layer) for layer in layers] == kinds and all(getattr(x, "bias", x) is not None for x in layers)


class PointNetPass:
    """Explicit passes of PointNet; the gradient of a maximum goes to the first point that attains it.

    Args:
        encoder: PointNet with the parameters.
        rows: Clouds per batch.
        points: Points per cloud.
        trained: Whether to keep the indices of the maxima for the backward pass.
        dtype: Number format of features and hidden activations; the first layer multiplies in float32.
        scratch: Shared memory.
    """

    def __init__(
        self, encoder: PointNet, rows: int, points: int, *, trained: bool, dtype: torch.dtype, scratch: Scratch
    ) -> None:
        self.trained = trained
        _, project, self.norm = cast(Any, encoder.project)
        shared: list[Any] = list(encoder.shared.lins)
        sources = [torch.float32] + [dtype] * len(shared)
        self.shared = [
            Layer(
                linear,
                rows * points,
                "points",
                index,
                source=sources[index],
                dtype=dtype,
                scratch=scratch,
                rectify=linear is not shared[-1],
            )
            for index, linear in enumerate(shared)
        ]
        self.project = Layer(project, rows, "encoder", 0, source=dtype, dtype=dtype, scratch=scratch, rectify=False)
        self.layers = [*self.shared, self.project]
        self.kernel = [points, 1]
        # Channels are last in memory, because pooling takes five times as long otherwise.
        self.by_cloud, self.grad_by_cloud = (
            x.view(rows, points, 1, -1).permute(0, 3, 1, 2) for x in (self.shared[-1].out, self.shared[-1].grad)
        )
        self.pooled_grad = scratch("pooled", rows, self.by_cloud.shape[1], dtype)

    def forward(self, observations: Float[Tensor, "batch points channels"]) -> Float[Tensor, "batch features"]:
        """Return the features without an autograd graph."""
        x = rearrange(observations * POSITION_SCALE, "batch points channels -> (batch points) channels")
        for layer in self.shared:
            x = layer.forward(x)
        y = self.project.forward(self._pool())
        norm = self.norm
        features, *self.statistics = torch.native_layer_norm(y, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
        return features

    def backward(self, grad: Float[Tensor, "batch features"]) -> None:
        """Set the gradients of the parameters from the gradient of the features."""
        norm, project = self.norm, self.project
        grad, norm.weight.grad, norm.bias.grad = torch.ops.aten.native_layer_norm_backward(
            grad, project.out, norm.normalized_shape, *self.statistics, norm.weight, norm.bias, [True] * 3
        )
        grad = torch.mm(project.backward(grad), project.used_weight, out=self.pooled_grad)
        self._spread(through_relu_(grad, as_integers(project.x)))
        backward(self.shared, self.shared[-1].grad)

    def _pool(self) -> Float[Tensor, "batch hidden"]:
        """Return the maximum over points after ReLU, and keep its indices for the backward pass."""
        if self.trained:
            pooled, self.winners = torch.ops.aten.max_pool2d_with_indices(self.by_cloud, self.kernel, self.kernel)
        else:  # if all numbers are negative, the integer maximum is wrong, but negative, and ReLU makes it 0
            pooled = as_integers(self.by_cloud).amax(dim=2).view(self.by_cloud.dtype)
        pooled = pooled.flatten(1)
        as_integers(pooled).clamp_min_(0)
        return pooled

    def _spread(self, grad: Float[Tensor, "batch hidden"]) -> None:
        """Scatter the gradients of the maxima to their points."""
        torch.ops.aten.max_pool2d_with_indices_backward.grad_input(
            grad[:, None, None].permute(0, 3, 1, 2),
            self.by_cloud,
            self.kernel,
            self.kernel,
            [0, 0],
            [1, 1],
            False,
            self.winners,
            grad_input=self.grad_by_cloud,
        )
