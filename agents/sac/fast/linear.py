"""Linear layers with forward and backward passes without autograd, in float32 or bfloat16.

The layers are made for a fixed number of rows and write to preallocated memory, because the cost of memory allocation
and of many small operations is not negligible compared with the matrix products.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

_linear: Any = F.linear  # its `out` is not in its signature

NARROW = 100  # number of inputs below which the transposed product is faster, by a factor of up to five


class Scratch:
    """Buffers that are shared by all requests with the same name, shape and number format, to save memory."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._buffers: dict[tuple[str, int, int, torch.dtype], Tensor] = {}

    def __call__(self, name: str, rows: int, columns: int, dtype: torch.dtype) -> Float[Tensor, "rows columns"]:
        """Return the buffer of this name, shape and number format."""
        key = (name, rows, columns, dtype)
        if key not in self._buffers:
            self._buffers[key] = torch.empty(rows, columns, dtype=dtype, device=self.device)
        return self._buffers[key]


class Layer:
    """Layer y = x Wᵀ + b or y = max(x Wᵀ + b, 0) that keeps x for the backward pass.

    Parameters and their gradients stay in float32.

    Args:
        linear: Layer of PyTorch or torch-geometric with the parameters.
        rows: Number of rows of x.
        name: Name of the network; networks of the same name overwrite each other's y.
        index: Index of the layer in its network.
        source: Number format of x and of the product.
        dtype: Number format of y.
        scratch: Memory shared with other layers.
        rectify: Whether a ReLU is applied.
    """

    def __init__(
        self,
        linear: Any,
        rows: int,
        name: str,
        index: int,
        *,
        source: torch.dtype,
        dtype: torch.dtype,
        scratch: Scratch,
        rectify: bool = True,
    ) -> None:
        self.weight, self.bias, self.rectify, self.source = linear.weight, linear.bias, rectify, source
        self.used_weight, self.used_bias = (
            p if p.dtype == source else torch.empty_like(p, dtype=source, requires_grad=False)
            for p in (linear.weight, linear.bias)
        )
        originals = ((self.used_weight, linear.weight), (self.used_bias, linear.bias))
        self.copies = [(used, original) for used, original in originals if used is not original]
        shape = (rows, len(linear.bias))
        self.out = scratch(f"{name} {index}", *shape, dtype)
        self.wide = None if source == dtype else scratch("wide", *shape, source)
        self.grad = scratch(f"gradient {index % 2}", *shape, dtype)
        self.x = torch.empty(0)
        self.positive = self._integers = as_integers(self.out)

    def forward(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows outputs"]:
        """Return y; the next call overwrites it."""
        self.x, self.positive = x, self._integers
        if self.wide is None:
            _linear(x, self.used_weight, self.used_bias, out=self.out)
        else:
            self.out.copy_(_linear(x, self.used_weight, self.used_bias, out=self.wide))
        if self.rectify:
            self._integers.clamp_min_(0)
        return self.out

    def select(self, rows: Tensor) -> None:
        """Keep only these rows for a backward pass without weights."""
        self.positive = self._integers.index_select(0, rows)

    def backward(self, grad: Float[Tensor, "rows outputs"], weights: bool = True) -> Float[Tensor, "rows outputs"]:
        """Convert the gradient of y in place to that of x Wᵀ + b, and set the parameters' gradients if `weights`."""
        if self.rectify:
            through_relu_(grad, self.positive)
        if weights:
            set_gradients(self.weight, self.bias, grad, self.x.to(grad.dtype))
        return grad


def backward(layers: Sequence[Layer], grad: Float[Tensor, "rows outputs"], weights: bool = True) -> Tensor:
    """Propagate the gradient of the last y, which is overwritten, back through the layers.

    Args:
        layers: Layers of a network in order.
        grad: Gradient of the last y.
        weights: Whether to set the gradients of the parameters.

    Returns:
        The gradient of x Wᵀ + b of the first layer.
    """
    grad = layers[-1].backward(grad, weights)
    for layer, above in reversed(list(pairwise(layers))):
        below = torch.mm(grad, above.used_weight, out=first_rows(layer.grad, len(grad)))
        grad = layer.backward(below, weights)
    return grad


def round_weights(layers: Iterable[Layer]) -> None:
    """Update the copies of the parameters in other number formats."""
    pairs = [pair for layer in layers for pair in layer.copies]
    if pairs:
        torch._foreach_copy_([used for used, _ in pairs], [original for _, original in pairs])


def as_integers(x: Tensor) -> Tensor:
    """Return a view of bfloat16 as integers, which have the same signs and are compared four times as fast."""
    return x.view(torch.int16) if x.dtype == torch.bfloat16 else x


def through_relu_(grad: Tensor, positive: Tensor) -> Tensor:
    """Set a gradient to 0 where the output of the ReLU, `positive` in the form of `as_integers`, is 0."""
    integers = as_integers(grad)
    torch.ops.aten.threshold_backward.grad_input(integers, positive, 0, grad_input=integers)
    return grad


def first_rows(buffer: Float[Tensor, "rows columns"], size: int) -> Float[Tensor, "size columns"]:
    """Return the first `size` rows of a buffer."""
    return buffer if len(buffer) == size else buffer[:size]


def set_gradients(
    weight: Tensor, bias: Tensor, grad: Float[Tensor, "batch outputs"], x: Float[Tensor, "batch inputs"]
) -> None:
    """Set the gradients of a layer's parameters from the gradient of its output and its input x."""
    if weight.grad is None or bias.grad is None:
        weight.grad, bias.grad = torch.empty_like(weight), torch.empty_like(bias)
    if x.shape[1] < NARROW:
        weight.grad.copy_((x.T @ grad).T)
    elif grad.dtype == weight.dtype:
        torch.mm(grad.T, x, out=weight.grad)
    else:
        weight.grad.copy_(grad.T @ x)
    bias.grad.copy_(grad.sum(0))
