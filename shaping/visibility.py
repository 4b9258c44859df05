"""Φ along an episode in which some frames do not show the puck.

A task reports ``info["puck_visible"]`` with every frame; where it reports nothing, every frame shows the puck. What a
frame without the puck shows in its place has no Φ:

- it repeats the Φ of the last frame of the episode that showed the puck;
- before there was one Φ is 0, and no transition is shaped, also not the one that ends in the first such frame, whose
  Φ(s) is γΦ(s′). The first sight then earns and costs nothing, whatever Φ is there;
- a step into the goal set has Φ(s′) = Φ(G) and one that terminates elsewhere 0, whether s′ shows the puck or not. If
  the puck was not seen before, Φ(s) is γΦ(s′) here too: a success without any sight earns the task's reward alone.
  With Φ(s) = 0 the shaping of T steps would sum up to γ^T Φ(G) there, and to γ^T Φ(G) − γ^k Φ(s_k) where the puck is
  seen at step k: hiding the puck would pay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

PotentialFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


def puck_visible(infos: Iterable[Mapping[str, Any]]) -> Bool[np.ndarray, " batch"]:
    """Return whether the frame that each `info` belongs to shows the puck."""
    return np.array([bool(info.get("puck_visible", True)) for info in infos], dtype=bool)


def known_potential(
    potential: PotentialFunction,
    observations: Shaped[np.ndarray, "batch ..."],
    visible: Bool[np.ndarray, " batch"],
    terminal: Bool[np.ndarray, " batch"] | None = None,
    success: Bool[np.ndarray, " batch"] | None = None,
) -> tuple[Float[np.ndarray, " batch"], Bool[np.ndarray, " batch"]]:
    """Evaluate Φ where it is known: in frames that show the puck or the goal set, and where a step terminated.

    A step that terminates outside the goal set is worth 0, so that no potential can make failing attractive.

    Args:
        potential: Φ(observations (B, …), success (B,)) → (B,), called with visible frames and successes.
        observations: Frames.
        visible: Whether each shows the puck.
        terminal: Whether the step that led to it terminated the episode; None of first frames.
        success: Whether it reached the goal set; None of first frames.

    Returns:
        Φ, 0 where it is not known, and where it is known: of first frames a `LastSeen`, of others what its `follow`
        takes.
    """
    terminal, success = (np.zeros(len(visible), bool) if flags is None else flags for flags in (terminal, success))
    values, evaluated = np.zeros(len(visible)), visible | success
    if evaluated.any():
        values[evaluated] = potential(observations[evaluated], success[evaluated])
    values[terminal & ~success] = 0.0
    return values, evaluated | terminal


class LastSeen(NamedTuple):
    """What a step needs of the frames before it, in every environment.

    Attributes:
        potential: Φ of the last frame that showed the puck, 0 if none did.
        seen: Whether one did in this episode.
    """

    potential: Float[np.ndarray, " envs"]
    seen: Bool[np.ndarray, " envs"]

    def follow(
        self, potential: Float[np.ndarray, " envs"], known: Bool[np.ndarray, " envs"], gamma: float
    ) -> tuple[Float[np.ndarray, " envs"], LastSeen]:
        """Take a step.

        Args:
            potential: Φ of the next frame where it is known.
            known: Where it is.
            gamma: γ of the shaping [1 per step].

        Returns:
            Φ(s) of the step's shaping term γΦ(s′) − Φ(s), and what the next step needs; its `potential` is Φ(s′).
        """
        following = np.where(known, potential, self.potential)
        return np.where(self.seen, self.potential, gamma * following), LastSeen(following, self.seen | known)
