"""Φ along an episode in which some frames do not show the puck.

A task reports ``info["puck_visible"]`` for every frame; if it is missing, the frame shows the puck. Φ cannot be
evaluated on a frame without the puck:

- The frame takes the Φ of the last frame of the episode that showed the puck.
- Before the first frame that shows the puck, Φ is 0 and no transition is shaped. This includes the transition into that
  first frame, for which Φ(s) is set to γΦ(s′), so that its shaping term is 0 for any Φ(s′).
- A step into the goal set has Φ(s′) = Φ(G), and a step that terminates elsewhere has Φ(s′) = 0, whether s′ shows the
  puck or not. If the puck has not been seen before, Φ(s) is γΦ(s′) here too: a success without any visible frame earns
  the reward of the task only. With Φ(s) = 0, the shaping terms of T steps would sum to γ^T Φ(G) for such an episode,
  and to γ^T Φ(G) − γ^k Φ(s_k) for one in which the puck is seen at step k: the agent would be rewarded for hiding it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

PotentialFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


def puck_visible(infos: Iterable[Mapping[str, Any]]) -> Bool[np.ndarray, " batch"]:
    """Return whether the frame of each `info` shows the puck."""
    return np.array([bool(info.get("puck_visible", True)) for info in infos], dtype=bool)


def known_potential(
    potential: PotentialFunction,
    observations: Shaped[np.ndarray, "batch ..."],
    visible: Bool[np.ndarray, " batch"],
    terminal: Bool[np.ndarray, " batch"] | None = None,
    success: Bool[np.ndarray, " batch"] | None = None,
) -> tuple[Float[np.ndarray, " batch"], Bool[np.ndarray, " batch"]]:
    """Evaluate Φ where it is known: in frames that show the puck, in the goal set, and where a step terminated.

    Φ is 0 after a step that terminates outside the goal set, so that no potential can reward failures.

    Args:
        potential: Φ(observations (B, …), success (B,)) → (B,), called only with visible frames and successes.
        observations: Frames, shape (batch, …).
        visible: Whether each frame shows the puck, shape (batch,).
        terminal: Whether the step to each frame terminated the episode, shape (batch,); None for first frames.
        success: Whether the step to each frame reached the goal set, shape (batch,); None for first frames.

    Returns:
        Φ, 0 where it is not known, and whether it is known, shape (batch,) each. For first frames these are the fields
        of a `LastSeen`, for others the arguments of `LastSeen.follow`.
    """
    terminal, success = (np.zeros(len(visible), bool) if flags is None else flags for flags in (terminal, success))
    values, evaluated = np.zeros(len(visible)), visible | success
    if evaluated.any():
        values[evaluated] = potential(observations[evaluated], success[evaluated])
    values[terminal & ~success] = 0.0
    return values, evaluated | terminal


class LastSeen(NamedTuple):
    """Summary of the previous frames of each environment, needed to shape the next step.

    Attributes:
        potential: Φ of the last frame that showed the puck, 0 if there was none.
        seen: Whether a frame of this episode has shown the puck.
    """

    potential: Float[np.ndarray, " envs"]
    seen: Bool[np.ndarray, " envs"]

    def follow(
        self, potential: Float[np.ndarray, " envs"], known: Bool[np.ndarray, " envs"], gamma: float
    ) -> tuple[Float[np.ndarray, " envs"], LastSeen]:
        """Return Φ(s) of a step and the updated summary.

        Args:
            potential: Φ of the next frame, where it is known.
            known: Whether it is known.
            gamma: Discount γ of the shaping [1 per step].

        Returns:
            Φ(s) of the shaping term γΦ(s′) − Φ(s) of the step, and the `LastSeen` for the next step; its `potential` is
            Φ(s′).
        """
        following = np.where(known, potential, self.potential)
        return np.where(self.seen, self.potential, gamma * following), LastSeen(following, self.seen | known)
