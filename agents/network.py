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


class Network:
    """Linear layers with ReLU between them; keeps the inputs of its layers for the backward pass.

    Results live in buffers that the next call overwrites: fresh memory would cost a tenth of the time.

    Args:
        module: The hidden layers, and the last one where `heads` is empty.
        heads: Last layers side by side, such as mean and log std.
    """

    def __init__(self, module: nn.Module, heads: Sequence[nn.Linear] = ()) -> None:
        layers = [layer for layer in module.children() if isinstance(layer, nn.Linear)]
        hidden, heads = (layers, heads) if heads else (layers[:-1], layers[-1:])
        self.hidden: list[tuple[Tensor, Tensor]] = [(layer.weight, layer.bias) for layer in hidden]
        self.heads: list[tuple[Tensor, Tensor]] = [(head.weight, head.bias) for head in heads]
        self.inputs: list[Tensor] = []
        self.buffers: dict[tuple[str, int], Tensor] = {}

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        """Return the outputs of all heads."""
        self.inputs = [x]
        for index, (weight, bias) in enumerate(self.hidden):
            x = torch.addmm(bias, x, weight.T, out=self._buffer("forward", index, x, len(bias))).relu_()
            self.inputs.append(x)
        return torch.addmm(_joined([bias for _, bias in self.heads]), x, self._head_weight().T)

    def select(self, rows: Tensor | slice) -> None:
        """Keep only these rows for the backward pass."""
        self.inputs = [x[rows] for x in self.inputs]

    def backward(self, grad: Float[Tensor, "batch outputs"], weights: bool = True) -> Float[Tensor, "batch first"]:
        """Set the gradient of every parameter, unless `weights` is false.

        Returns:
            The gradient behind the first layer, before its ReLU; `input_gradient` takes it on to the inputs.
        """
        *inputs, x = self.inputs
        if weights:
            parts = grad.split([len(bias) for _, bias in self.heads], dim=1)
            for head, part in zip(self.heads, parts, strict=True):
                _set_gradients(*head, part, x)
        grad = self._product(grad, self._head_weight(), x, len(self.hidden))
        for index in range(len(self.hidden) - 1, 0, -1):
            if weights:
                _set_gradients(*self.hidden[index], grad, inputs[index])
            grad = self._product(grad, self.hidden[index][0], inputs[index], index)
        if weights:
            _set_gradients(*self.hidden[0], grad, inputs[0])
        return grad

    def input_gradient(self, grad: Float[Tensor, "batch first"], columns: slice) -> Float[Tensor, "batch columns"]:
        """Return the gradient of some columns of the input, from that behind the first layer."""
        # The copy is worth it: for few columns the product is five times as fast.
        return grad @ self.hidden[0][0][:, columns].T.contiguous().T

    def _product(self, grad: Tensor, weight: Tensor, activation: Tensor, index: int) -> Tensor:
        """Pass a gradient back through a layer and the ReLU before it."""
        grad = torch.mm(grad, weight, out=self._buffer("backward", index, grad, weight.shape[1]))
        return torch.ops.aten.threshold_backward.grad_input(grad, activation, 0, grad_input=grad)

    def _head_weight(self) -> Tensor:
        return _joined([weight for weight, _ in self.heads])

    def _buffer(self, name: str, index: int, like: Tensor, columns: int) -> Tensor:
        buffer = self.buffers.get((name, index))
        if buffer is None or len(buffer) < len(like):
            buffer = self.buffers[name, index] = like.new_empty(len(like), columns)
        return buffer[: len(like)]


def _joined(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def _set_gradients(
    weight: Tensor, bias: Tensor, grad: Float[Tensor, "batch outputs"], x: Float[Tensor, "batch inputs"]
) -> None:
    if weight.grad is None or bias.grad is None:
        weight.grad, bias.grad = torch.empty_like(weight), torch.empty_like(bias)
    if x.shape[1] < 64:  # then the transposed product is four times as fast
        weight.grad.copy_((x.T @ grad).T)
    else:
        torch.mm(grad.T, x, out=weight.grad)
    torch.sum(grad, 0, out=bias.grad)
