"""Agents on top of Stable-Baselines3: SAC, pre-training, training, evaluation and comparison."""

from typing import TYPE_CHECKING, Any

import envs  # noqa: F401 (first: it sets the number of BLAS threads before NumPy is loaded)

if TYPE_CHECKING:
    from agents.sac.algorithm import SAC

__all__ = ["SAC"]


def __getattr__(name: str) -> Any:
    """Import `SAC` on first access, so that commands load only the modules that they need."""
    if name in __all__:
        from agents import sac

        return getattr(sac, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
