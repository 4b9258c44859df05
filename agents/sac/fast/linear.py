"""Linear layers, forwards and backwards without autograd, in float32 or bfloat16.

They are made for a fixed number of rows and write to memory of their own: beside the products, fresh memory and many
small operations are not small.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

_linear: Any = F.linear  # its `out` is not in its signature

NARROW = 100  # inputs below which the transposed product is the faster one, up to five times


class Scratch:
    """Memory by name; requests of one name, shape and format share it, so that little of it is in use."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._buffers: dict[tuple[str, int, int, torch.dtype], Tensor] = {}

    def __call__(self, name: str, rows: int, columns: int, dtype: torch.dtype) -> Float[Tensor, "rows columns"]:
        """Return the buffer of that name, shape and format."""
        key = (name, rows, columns, dtype)
        if key not in self._buffers:
            self._buffers[key] = torch.empty(rows, columns, dtype=dtype, device=self.device)
        return self._buffers[key]


class Layer:
    """y = x Wᵀ + b or max(x Wᵀ + b, 0), keeping x for the backward pass. Parameters and gradients stay float32.

    Args:
        linear: PyTorch's or torch-geometric's layer, which holds the parameters.
        rows: Rows of x.
        name: Networks of one name overwrite each other's y.
        index: Of the layer in its network.
        source: Format of x, in which the layer multiplies.
        dtype: Format of y.
        scratch: Memory to share with other layers.
        rectify: Whether the ReLU follows.
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
        """Return y, which the next call overwrites."""
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
        """Take the gradient of y back to that of x Wᵀ + b, overwriting it, and set the parameters' if `weights`."""
        if self.rectify:
            through_relu_(grad, self.positive)
        if weights:
            set_gradients(self.weight, self.bias, grad, self.x.to(grad.dtype))
        return grad


def backward(layers: Sequence[Layer], grad: Float[Tensor, "rows outputs"], weights: bool = True) -> Tensor:
    """Take the gradient of the last y back through the layers, overwriting it, and set the parameters' if `weights`.

    Returns:
        The gradient of the first layer's x Wᵀ + b.
    """
    grad = layers[-1].backward(grad, weights)
    for layer, above in reversed(list(pairwise(layers))):
        below = torch.mm(grad, above.used_weight, out=first_rows(layer.grad, len(grad)))
        grad = layer.backward(below, weights)
    return grad


def round_weights(layers: Iterable[Layer]) -> None:
    """Bring the copies of parameters in other formats up to date."""
    pairs = [pair for layer in layers for pair in layer.copies]
    if pairs:
        torch._foreach_copy_([used for used, _ in pairs], [original for _, original in pairs])


def as_integers(x: Tensor) -> Tensor:
    """Return bfloat16 as integers: their signs are those of the numbers, and they are compared four times as fast."""
    return x.view(torch.int16) if x.dtype == torch.bfloat16 else x


def through_relu_(grad: Tensor, positive: Tensor) -> Tensor:
    """Zero a gradient where the ReLU was flat; `positive` is its result, `as_integers`."""
    integers = as_integers(grad)
    torch.ops.aten.threshold_backward.grad_input(integers, positive, 0, grad_input=integers)
    return grad


def first_rows(buffer: Float[Tensor, "rows columns"], size: int) -> Float[Tensor, "size columns"]:
    """Return the part of a buffer that `size` rows take."""
    return buffer if len(buffer) == size else buffer[:size]


def set_gradients(
    weight: Tensor, bias: Tensor, grad: Float[Tensor, "batch outputs"], x: Float[Tensor, "batch inputs"]
) -> None:
    """Set the gradients of a layer's parameters, from that of its output and its input."""
    if weight.grad is None or bias.grad is None:
        weight.grad, bias.grad = torch.empty_like(weight), torch.empty_like(bias)
    if x.shape[1] < NARROW:
        weight.grad.copy_((x.T @ grad).T)
    elif grad.dtype == weight.dtype:
        torch.mm(grad.T, x, out=weight.grad)
    else:
        weight.grad.copy_(grad.T @ x)
    bias.grad.copy_(grad.sum(0))
