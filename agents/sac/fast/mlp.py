"""Fully connected networks with an explicit backward pass."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from agents.sac.fast.linear import Layer, Scratch, backward, first_rows, set_gradients


def is_written_out(module: nn.Module) -> bool:
    """Return whether `Network` supports the module: linear layers, each except the last followed by a ReLU."""
    layers = list(module.children())
    linear, between = layers[::2], layers[1::2]
    alternate = all(map(is_linear, linear)) and all(type(layer) is nn.ReLU for layer in between)
    return len(layers) > 1 and type(module) is nn.Sequential and alternate


def is_linear(layer: nn.Module) -> bool:
    """Return whether a layer is x Wᵀ + b."""
    return type(layer) is nn.Linear and layer.bias is not None


class Network:
    """Network of linear layers with ReLU between them and float32 outputs.

    Args:
        module: Hidden layers, followed by the last layer if `heads` is empty.
        heads: Parallel last layers, such as mean and log std.
        rows: Number of input rows.
        name: Name of the network; networks of the same name overwrite each other's activations.
        source: Number format of the inputs.
        dtype: Number format of hidden activations and their gradients.
        scratch: Memory shared with other networks.
    """

    def __init__(
        self,
        module: nn.Module,
        heads: Sequence[nn.Linear] = (),
        *,
        rows: int,
        name: str,
        source: torch.dtype,
        dtype: torch.dtype,
        scratch: Scratch,
    ) -> None:
        linear = [layer for layer in module.children() if isinstance(layer, nn.Linear)]
        hidden, self.heads = (linear, heads) if heads else (linear[:-1], linear[-1:])
        formats = [source] + [dtype] * len(hidden)
        self.layers = [
            Layer(layer, rows, name, index, source=formats[index], dtype=dtype, scratch=scratch)
            for index, layer in enumerate(hidden)
        ]
        _, width = self.layers[-1].out.shape
        self.wide = None if dtype == torch.float32 else scratch("wide", rows, width, torch.float32)

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        """Return the concatenated outputs of all heads."""
        for layer in self.layers:
            x = layer.forward(x)
        return torch.addmm(_joined([h.bias for h in self.heads]), self._last(), self._head_weight().T)

    def select(self, rows: Tensor) -> None:
        """Keep only these rows for a backward pass without weights."""
        for layer in self.layers:
            layer.select(rows)

    def backward(self, grad: Float[Tensor, "batch outputs"], weights: bool = True) -> Float[Tensor, "batch first"]:
        """Propagate the gradient of the outputs back, and set the gradients of the parameters if `weights`.

        Returns:
            The gradient of the first layer's output before its ReLU, from which `input_gradient` computes the gradient
            of the inputs.
        """
        if weights:
            last = self._last()
            for head, part in zip(self.heads, grad.split([len(h.bias) for h in self.heads], dim=1), strict=True):
                set_gradients(head.weight, head.bias, part, last)
        size, top = len(grad), self.layers[-1]
        behind = first_rows(top.grad, size)
        if self.wide is None:
            grad = torch.mm(grad, self._head_weight(), out=behind)
        else:
            grad = behind.copy_(torch.mm(grad, self._head_weight(), out=first_rows(self.wide, size)))
        return backward(self.layers, grad, weights)

    def input_gradient(self, grad: Float[Tensor, "batch first"], columns: slice) -> Float[Tensor, "batch columns"]:
        """Return the gradient of some columns of the input from the gradient of the first layer's output."""
        # For few columns, the product with a contiguous copy is five times as fast.
        weight = self.layers[0].used_weight[:, columns].to(grad.dtype)
        return grad @ weight.T.contiguous().T

    def _last(self) -> Float[Tensor, "batch last"]:
        """Return the input of the heads in float32."""
        out = self.layers[-1].out
        return out if self.wide is None else self.wide.copy_(out)  # recomputed: a stored copy would leave the cache

    def _head_weight(self) -> Tensor:
        return _joined([head.weight for head in self.heads])


def _joined(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)
