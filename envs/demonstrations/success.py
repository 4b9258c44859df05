"""The end of a demonstration: its first success."""

from collections.abc import Callable, Mapping

import numpy as np

# Observations, (H + 1, …) each → (H + 1,): 1 in the goal set, 0 outside, NaN where the observations do not decide.
Success = Callable[[Mapping[str, np.ndarray]], np.ndarray]


def first_success(
    observations: Mapping[str, np.ndarray],
    success: Success,
    rewards: np.ndarray | None = None,
    dones: np.ndarray | None = None,
) -> int | None:
    """Return the first step that ends in the goal set: min {t ≥ 1: s_t in the goal set}.

    Where `success` is NaN, a step that was recorded with a reward of 1 or as done is a success. Rewards other than 0
    and 1 are shaped or scaled and are ignored.

    Args:
        observations: Observations by name, shape (H + 1, …) each.
        success: Goal set of the task, by which the states are judged.
        rewards: Recorded rewards, shape (H,).
        dones: Recorded dones, shape (H,).

    Returns:
        Step, from 1 to H; None if there is no success.

    Raises:
        ValueError: `success` does not return one flag for every state.
    """
    flags = np.asarray(success(observations), float)
    states = len(next(iter(observations.values())))
    if flags.shape != (states,):
        raise ValueError(f"success gave an array of shape {flags.shape}, not one flag for each of {states} states")
    recorded = np.zeros(states - 1, bool)
    for signal in (rewards, dones):
        if signal is not None and np.isin(signal, (0, 1)).all():
            recorded |= signal == 1
    steps = np.flatnonzero(np.where(np.isnan(flags[1:]), recorded, flags[1:] > 0))
    return int(steps[0]) + 1 if len(steps) else None
