"""Agents on top of Stable-Baselines3: SAC, pre-training, training, evaluation and comparison."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import envs  # noqa: F401 (first: it sets the number of BLAS threads before NumPy is loaded)

if TYPE_CHECKING:
    from agents.fit import fit_value, fit_value_offline
    from agents.sac.algorithm import SAC

_HOMES = {"SAC": "agents.sac", "fit_value": "agents.fit", "fit_value_offline": "agents.fit"}
__all__ = ["SAC", "fit_value", "fit_value_offline"]


def __getattr__(name: str) -> Any:
    """Import a name on first access, so that commands load only the modules that they need."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
