"""Global random states of a process (PyTorch, NumPy and Python), which wrappers of the user may draw from."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

States = dict[str, Any]


def seeded(seed: int) -> States:
    """Return the random states of generators with this seed."""
    return {
        "torch": torch.Generator().manual_seed(seed).get_state(),
        "numpy": np.random.RandomState(seed).get_state(),
        "python": random.Random(seed).getstate(),
    }


@contextmanager
def drawing_from(states: States) -> Iterator[None]:
    """Use `states` as the global random states inside the context, update them, and restore the global ones after."""
    others = _get()
    _set(states)
    try:
        yield
        states |= _get()
    finally:
        _set(others)


def _get() -> States:
    return {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()}  # noqa: NPY002


def _set(states: States) -> None:
    torch.set_rng_state(states["torch"].cpu())
    np.random.set_state(states["numpy"])  # noqa: NPY002
    random.setstate(states["python"])
