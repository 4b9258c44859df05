"""Success of a step, as reported by the task in `info`; it is not inferred from the end of the episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

IS_SUCCESS = "is_success"  # the key of `info` in Gymnasium's robotics tasks and Stable-Baselines3
Success = str | Callable[[Mapping[str, Any]], Any]


def succeeded(info: Mapping[str, Any], success: Success = IS_SUCCESS, ended: bool = True) -> bool:
    """Return whether the step that gave `info` reached the goal set.

    Args:
        info: The `info` of the step.
        success: A key of `info`, or a function of it.
        ended: Whether the success must be reported. If False, missing success means False, because many tasks report
            it at the end of an episode only.

    Raises:
        ValueError: The success must be reported and is missing in `info`, or it is neither true nor false.
    """
    try:
        said = success(info) if callable(success) else info[success]
    except KeyError:
        said = None
    if said is None:
        if ended:
            raise ValueError(_unsaid(info, success))
        return False
    flag = np.asarray(said)
    if flag.size != 1 or flag.dtype.kind not in "buif" or flag.item() not in (0, 1):
        raise ValueError(f"success={success!r} gave {said!r}; it must be true or false")
    return bool(flag)


def _unsaid(info: Mapping[str, Any], success: Success) -> str:
    asked = "what success= asks for" if callable(success) else repr(success)
    keys = ", ".join(map(repr, info)) or "no keys"
    return (
        f"an episode ended and info does not have {asked}, so that its success is unknown; info has {keys}: "
        "give success= the key that tells it, or a function of info (lambda info: False if no end is a success)"
    )
