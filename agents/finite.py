"""Checks that numbers and weights are finite, so that a run stops before it learns from a NaN or an infinity."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


class NotFiniteError(ValueError):
    """A number is NaN or infinite.

    Args:
        message: Error message that names the quantity.
        arrays: Arrays by name that help to find the cause.
        index: Index of the number in the quantity.
    """

    def __init__(self, message: str, arrays: dict[str, Any] | None = None, index: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.arrays, self.index = arrays or {}, index


def check_finite(**named: Any) -> None:
    """Check that numbers or arrays are finite.

    Raises:
        NotFiniteError: One of them is not finite; the message gives its name, value and index.
    """
    for name, value in named.items():
        finite = np.isfinite(value)
        if not finite.all():
            index = np.argwhere(~finite)[0].tolist()
            where = f" at index {index}" if index else ""
            message = f"{name.replace('_', ' ')} is {np.asarray(value)[tuple(index)]}{where}"
            raise NotFiniteError(message, named, index)


def check_weights(module: torch.nn.Module) -> None:
    """Check that the weights of a module are finite.

    Raises:
        NotFiniteError: A weight is not finite; the message names it, and `arrays` holds all weights.
    """
    for name, tensor in module.state_dict().items():
        if not torch.isfinite(tensor).all():
            raise NotFiniteError(f"weight {name} is not finite", named_weights(module))


def named_weights(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Return the weights of a module as arrays, named "weights/NAME"."""
    return {f"weights/{name}": tensor.cpu().numpy() for name, tensor in module.state_dict().items()}
