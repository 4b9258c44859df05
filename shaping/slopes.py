"""How fast the estimated value changes from one goal to another nearby."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from shaping.goals import GoalSet

REACH = 0.015  # distance over which slopes are measured and used [m]
_TIME = 0.2  # a difference of velocities counts like the way it makes in this time [s]
_RING = 0.01  # width of the rings of distance [m]
_MARGIN = 1.25  # of the slopes over those measured
_ARM = 0.15  # the end effector is put aside by up to this [m]
_STATES, _PAIRS = 256, 8192  # that are drawn


@dataclass(frozen=True)
class Slopes:
    """Largest change of Ṽ_g [1/m] between goals at most `REACH` apart, by the distance from the puck.

    Near the puck the value has cliffs (a goal behind it takes a way around), far away it is a gentle slope.

    Attributes:
        rings: for goals at least as far as each multiple of `_RING` (rings,); they do not increase.
    """

    rings: Float[np.ndarray, " rings"]

    def at(self, distance: Float[np.ndarray, " goals"]) -> Float[np.ndarray, " goals"]:
        """Return the slopes of goals at least this far from the puck [m]."""
        return self.rings[(distance / _RING).astype(int).clip(0, len(self.rings) - 1)]


def coordinates(goal: Float[np.ndarray, "goals dim"]) -> Float[np.ndarray, "goals dim"]:
    """Return goals in coordinates in which a slope is the same in all directions [m]."""
    scaled = goal.astype(np.float32)
    scaled[:, 2:] *= _TIME
    return scaled


def measure_slopes(
    value: Callable[[Float[np.ndarray, "pairs ..."]], Float[np.ndarray, " pairs"]],
    goals: GoalSet,
    observations: Float[np.ndarray, "states ..."],
    goal: Float[np.ndarray, "goals dim"],
    radius: float,
) -> Slopes:
    """Measure slopes on random demonstrated states, aimed at random demonstrated goals in range and beside them.

    The end effector is put somewhere around, since an agent's is not always where a demonstration's was: the first two
    columns of an observation hold the puck relative to it.

    Args:
        value: Ṽ_g of observations that are aimed at a goal.
        goals: goal set of the observations.
        observations: states to start from.
        goal: goals to aim at.
        radius: range of the goals [m].
    """
    rng = np.random.default_rng(0)
    observations = observations[rng.integers(len(observations), size=_STATES)]
    observations[..., :2] += rng.uniform(-_ARM, _ARM, (_STATES, *[1] * (observations.ndim - 2), 2)).astype(np.float32)
    near = (goals.displacement(observations, goal) <= radius + REACH).nonzero()
    state, aim = (index[rng.integers(len(near[0]), size=_PAIRS)] for index in near)
    length = rng.uniform(0.1 * REACH, REACH, len(state))
    aside = rng.normal(size=(len(state), goal.shape[1]))
    aside *= (length / np.linalg.norm(aside, axis=1))[:, None]
    aside[:, 2:] /= _TIME
    here = goal[aim]
    beside = (here + aside).astype(np.float32)
    change = np.abs(value(goals.relabel(observations[state], beside)) - value(goals.relabel(observations[state], here)))
    offset = goals.extract(observations[state])[:, :2] - here[:, :2]
    ring = (np.hypot(*offset.T) / _RING).astype(int)
    rings = np.zeros(ring.max() + 1)
    np.maximum.at(rings, ring, change / length)
    return Slopes(_MARGIN * np.maximum.accumulate(rings[::-1])[::-1].astype(np.float32))
