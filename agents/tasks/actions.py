"""Action spaces that agents can use, and actions in the units of the environment or in those of agents, [−1, 1]."""

import numpy as np
from gymnasium import spaces
from jaxtyping import Float

from envs.demonstrations.trajectory import Bounds


def check_actions(space: spaces.Space) -> None:
    """Check that an action space is a bounded Box of real numbers with one axis.

    Raises:
        ValueError: It is not, or a number has no range; the message says what a wrapper must do.
    """
    if not (isinstance(space, spaces.Box) and len(space.shape) == 1 and space.is_bounded()):
        raise ValueError(f"actions are {space}; the agent needs a bounded Box of one axis")
    if not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"actions are {space}; the agent needs real numbers: convert them in a wrapper")
    fixed = np.flatnonzero(space.low >= space.high).tolist()
    if fixed:
        raise ValueError(f"actions are {space}: numbers {fixed} have no range; leave them out in a wrapper")


def is_unit(bounds: Bounds) -> bool:
    """Return whether the bounds of an action are −1 and 1."""
    low, high = bounds
    return bool((low == -1).all() and (high == 1).all())


def to_agent(actions: Float[np.ndarray, "steps actions"], bounds: Bounds) -> Float[np.ndarray, "steps actions"]:
    """Return actions of an environment, rescaled to [−1, 1]."""
    low, high = (np.asarray(bound, float) for bound in bounds)
    return actions if is_unit(bounds) else (2 * (actions - low) / (high - low) - 1).astype(np.float32)


def to_environment(actions: Float[np.ndarray, "steps actions"], bounds: Bounds) -> Float[np.ndarray, "steps actions"]:
    """Return actions of an agent, rescaled from [−1, 1] to the bounds of an environment."""
    low, high = (np.asarray(bound, float) for bound in bounds)
    if is_unit(bounds):
        return actions
    return np.clip(low + (np.asarray(actions, float) + 1) * (high - low) / 2, low, high).astype(np.float32)
