"""A number that is not finite stops a run where it appears, before anything learns from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


class NotFiniteError(ValueError):
    """A number that should be finite is not.

    Args:
        message: Names the quantity.
        arrays: What shows where it came from.
        index: Where it is in the quantity.
    """

    def __init__(self, message: str, arrays: dict[str, Any] | None = None, index: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.arrays, self.index = arrays or {}, index


def check_finite(**named: Any) -> None:
    """Check numbers or arrays.

    Raises:
        NotFiniteError: One of them is not finite; names it, its value and its index.
    """
    for name, value in named.items():
        finite = np.isfinite(value)
        if not finite.all():
            index = np.argwhere(~finite)[0].tolist()
            where = f" at index {index}" if index else ""
            message = f"{name.replace('_', ' ')} is {np.asarray(value)[tuple(index)]}{where}"
            raise NotFiniteError(message, named, index)


def check_weights(module: torch.nn.Module) -> None:
    """Check the weights of a module.

    Raises:
        NotFiniteError: One of them is not finite; names it and carries them all.
    """
    for name, tensor in module.state_dict().items():
        if not torch.isfinite(tensor).all():
            raise NotFiniteError(f"weight {name} is not finite", named_weights(module))


def named_weights(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Return the weights of a module as arrays, named "weights/NAME"."""
    return {f"weights/{name}": tensor.cpu().numpy() for name, tensor in module.state_dict().items()}
