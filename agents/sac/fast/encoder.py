"""Forward and backward passes of the policy's encoder: explicit for PointNet, by autograd for other encoders."""

from collections.abc import Iterable
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from agents.sac.fast.linear import Layer, Scratch
from agents.sac.policy import EncoderExtractor

POINTNET = "perception.encoders.pointnet"


class EncoderPass(Protocol):
    """Encoder as required by `Update`; `layers` are the layers whose weights have rounded copies."""

    trained: bool
    layers: list[Layer]

    def forward(self, observations: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch features"]:
        """Return the features without an autograd graph."""

    def backward(self, grad: Float[Tensor, "batch features"]) -> None:
        """Set the gradients of the parameters from the gradient of the features."""


def make_encoder_pass(
    extractor: nn.Module, shape: Iterable[int], *, trained: bool, dtype: torch.dtype, scratch: Scratch
) -> EncoderPass:
    """Return the forward and backward passes of a features extractor.

    Args:
        extractor: Features extractor of Stable-Baselines3.
        shape: Shape of a batch of observations.
        trained: Whether to compute gradients of the parameters that require them.
        dtype: Number format of features and hidden activations of the explicit passes.
        scratch: Shared memory; encoders made with it overwrite each other's activations.
    """
    frozen = [not (trained and p.requires_grad) for p in extractor.parameters()]
    encoder = extractor.encoder if type(extractor) is EncoderExtractor else extractor
    if type(encoder).__module__ == POINTNET and (all(frozen) or not any(frozen)):
        # Imported here, since PyTorch Geometric takes seconds to import and other encoders do without it.
        from agents.sac.fast.pointnet import PointNetPass, is_as_made

        if is_as_made(encoder):
            rows, points, _ = shape
            return PointNetPass(encoder, rows, points, trained=not any(frozen), dtype=dtype, scratch=scratch)
    return AutogradPass(extractor, trained=not all(frozen))


class AutogradPass:
    """Passes of any encoder by autograd.

    Args:
        module: Encoder, observations (batch, …) → features (batch, features).
        trained: Whether to keep the autograd graph for the backward pass.
    """

    def __init__(self, module: nn.Module, *, trained: bool) -> None:
        self.module, self.trained = module, trained
        self.layers: list[Layer] = []
        self.output = torch.empty(0)

    def forward(self, observations: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch features"]:
        """Return the features without an autograd graph."""
        with torch.set_grad_enabled(self.trained):
            self.output = self.module(observations)
        return self.output.detach()

    def backward(self, grad: Float[Tensor, "batch features"]) -> None:
        """Set the gradients of the parameters from the gradient of the features."""
        self.module.zero_grad()
        self.output.backward(grad.to(self.output.dtype))
