"""Fully connected networks with the backward pass written out."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


def is_written_out(module: nn.Module) -> bool:
    """Whether `Network` computes what the module does: linear layers, each but the last followed by a ReLU."""
    kinds = [type(layer) for layer in module.children()]
    pairs = [nn.Linear, nn.ReLU] * (len(kinds) // 2)
    return len(kinds) > 1 and type(module) is nn.Sequential and kinds == pairs + [nn.Linear] * (len(kinds) % 2)


class Scratch:
    """Memory that results are written to and the next ones overwrite: fresh memory has to be fetched first."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, int, torch.dtype], Tensor] = {}

    def __call__(self, name: str, rows: int, columns: int, like: Tensor) -> Float[Tensor, "rows columns"]:
        """Return the buffer of that name and width."""
        key = (name, columns, like.dtype)
        if key not in self._buffers or len(self._buffers[key]) < rows:
            self._buffers[key] = like.new_empty(rows, columns)
        buffer = self._buffers[key]
        return buffer if len(buffer) == rows else buffer[:rows]


class Network:
    """Linear layers with ReLU between them; keeps the inputs of its layers for the backward pass.

    Args:
        module: The hidden layers, and the last one where `heads` is empty.
        heads: Last layers side by side, such as mean and log std.
        dtype: Of the products between hidden layers, which are almost all of the work. First and last layer,
            parameters and their gradients keep their own.
        scratch: Memory to write to.
        name: Networks of one scratch and one name overwrite each other's inputs.
    """

    def __init__(
        self, module: nn.Module, heads: Sequence[nn.Module] = (), *, dtype: torch.dtype, scratch: Scratch, name: str
    ) -> None:
        layers = [layer for layer in module.children() if isinstance(layer, nn.Linear)]
        hidden, last = (layers, heads) if heads else (layers[:-1], layers[-1:])
        pairs: list[tuple[Tensor, Tensor]] = [(layer.weight, layer.bias) for layer in hidden]
        self.first, self.middle = pairs[0], pairs[1:]
        self.heads: list[tuple[Tensor, Tensor]] = [(head.weight, head.bias) for head in last]  # type: ignore[misc]
        self.dtype, self.scratch, self.name = dtype, scratch, name
        self.x = torch.empty(0)
        self.activations: list[Tensor] = []  # of the hidden layers
        self.weights: list[Tensor] = []  # of all layers but the first, as they were used

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        """Return the outputs of all heads."""
        weight, bias = self.first
        self.x = x
        x = torch.addmm(bias, x, weight.T, out=self._buffer(f"{self.name} 0", x, len(bias))).relu_().to(self.dtype)
        self.activations, self.weights = [x], []
        for index, (weight, bias) in enumerate(self.middle, start=1):
            weight, bias = weight.to(self.dtype), bias.to(self.dtype)
            x = torch.addmm(bias, x, weight.T, out=self._buffer(f"{self.name} {index}", x, len(bias))).relu_()
            self.activations.append(x)
            self.weights.append(weight)
        weight, bias = self.heads[0] if len(self.heads) == 1 else map(torch.cat, zip(*self.heads, strict=True))
        self.weights.append(weight)
        return torch.addmm(bias, x.to(bias.dtype), weight.T)

    def select(self, rows: Tensor | slice) -> None:
        """Keep only these rows for the backward pass."""
        self.x, *self.activations = [x[rows] for x in (self.x, *self.activations)]

    def backward(self, grad: Float[Tensor, "batch outputs"], weights: bool = True) -> Float[Tensor, "batch first"]:
        """Set the gradient of every parameter, unless `weights` is false.

        Returns:
            The gradient behind the first layer, before its ReLU; `input_gradient` takes it on to the inputs.
        """
        if weights:
            last = self.activations[-1].to(grad.dtype)
            for head, part in zip(self.heads, grad.split([len(bias) for _, bias in self.heads], dim=1), strict=True):
                _set_gradients(*head, part, last)
        grad = self._back(grad, len(self.middle))
        for index in range(len(self.middle), 0, -1):
            if weights:
                _set_gradients(*self.middle[index - 1], grad, self.activations[index - 1])
            grad = self._back(grad, index - 1)
        grad = grad.to(self.x.dtype)
        if weights:
            _set_gradients(*self.first, grad, self.x)
        return grad

    def input_gradient(self, grad: Float[Tensor, "batch first"], columns: slice) -> Float[Tensor, "batch columns"]:
        """Return the gradient of some columns of the input, from that behind the first layer."""
        # The copy is worth it: for few columns the product is five times as fast.
        return grad @ self.first[0][:, columns].T.contiguous().T

    def _back(self, grad: Tensor, index: int) -> Tensor:
        """Pass a gradient back through a layer and the ReLU before it."""
        weight, activation = self.weights[index], self.activations[index]
        grad = torch.mm(grad, weight, out=self._buffer(f"gradient {index % 2}", grad, weight.shape[1]))
        grad = grad.to(activation.dtype)
        return torch.ops.aten.threshold_backward.grad_input(grad, activation, 0, grad_input=grad)

    def _buffer(self, name: str, like: Tensor, columns: int) -> Tensor:
        return self.scratch(name, len(like), columns, like)


def _set_gradients(
    weight: Tensor, bias: Tensor, grad: Float[Tensor, "batch outputs"], x: Float[Tensor, "batch inputs"]
) -> None:
    if weight.grad is None or bias.grad is None:
        weight.grad, bias.grad = torch.empty_like(weight), torch.empty_like(bias)
    if x.shape[1] < 64:  # then the transposed product is four times as fast
        weight.grad.copy_((x.T @ grad).T)
    elif grad.dtype == weight.dtype:
        torch.mm(grad.T, x, out=weight.grad)
    else:
        weight.grad.copy_(grad.T @ x)
    torch.sum(grad, 0, dtype=bias.dtype, out=bias.grad)
