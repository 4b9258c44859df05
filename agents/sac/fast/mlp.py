"""Fully connected networks with the backward pass written out."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from agents.sac.fast.linear import Layer, Scratch, backward, first_rows, set_gradients


def is_written_out(module: nn.Module) -> bool:
    """Whether `Network` computes what the module does: linear layers, each but the last followed by a ReLU."""
    layers = list(module.children())
    linear, between = layers[::2], layers[1::2]
    alternate = all(map(is_linear, linear)) and all(type(layer) is nn.ReLU for layer in between)
    return len(layers) > 1 and type(module) is nn.Sequential and alternate


def is_linear(layer: nn.Module) -> bool:
    """Whether a layer is x Wᵀ + b."""
    return type(layer) is nn.Linear and layer.bias is not None


class Network:
    """Linear layers with ReLU between them; outputs are float32.

    Args:
        module: The hidden layers, and the last one where `heads` is empty.
        heads: Last layers side by side, such as mean and log std.
        rows: Rows of the inputs.
        name: Networks of one name overwrite each other's activations.
        source: Format of the inputs.
        dtype: Format of hidden activations and their gradients.
        scratch: Memory to share with other networks.
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
        """Return the outputs of all heads."""
        for layer in self.layers:
            x = layer.forward(x)
        return torch.addmm(_joined([h.bias for h in self.heads]), self._last(), self._head_weight().T)

    def select(self, rows: Tensor) -> None:
        """Keep only these rows for a backward pass without weights."""
        for layer in self.layers:
            layer.select(rows)

    def backward(self, grad: Float[Tensor, "batch outputs"], weights: bool = True) -> Float[Tensor, "batch first"]:
        """Set the gradient of every parameter, unless `weights` is false.

        Returns:
            The gradient behind the first layer, before its ReLU; `input_gradient` takes it on to the inputs.
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
        """Return the gradient of some columns of the input, from that behind the first layer."""
        # The copy is worth it: for few columns the product is five times as fast.
        weight = self.layers[0].used_weight[:, columns].to(grad.dtype)
        return grad @ weight.T.contiguous().T

    def _last(self) -> Float[Tensor, "batch last"]:
        """The input of the heads in float32."""
        out = self.layers[-1].out
        return out if self.wide is None else self.wide.copy_(out)  # again and again: kept, it would leave the cache

    def _head_weight(self) -> Tensor:
        return _joined([head.weight for head in self.heads])


def _joined(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)
