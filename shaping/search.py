"""Find the best demonstrated goal of a state while evaluating few of them.

The network's value of a goal is the cost. No goal can exceed V_d ⊕ 1, since Ṽ_g ≤ 1, so goals are evaluated best first
until nothing better can come. Where many demonstrations run side by side that bound says little: a hundred goals lie
within a centimetre and have almost the same value. Then a goal that has been evaluated bounds its neighbours,

    Ṽ_g(s; g′) ≤ Ṽ_g(s; g) + slope · |g′ − g|,

with slopes that were measured on the estimator (`shaping.slopes`). Every value that comes back is compared with its
bound; if one exceeds it, slopes are not trusted for this state, and only V_d ⊕ 1 counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from shaping.slopes import REACH, Slopes, coordinates

AT_ONCE = 32  # goals in one call of the network
_CELL = 0.006  # of the grid whose cells are looked at one by one [m]
_POOL = 256  # of the most promising goals, among which those of different cells come first
_ROUNDING = 1e-4  # of distances [m], and of values


@dataclass(frozen=True)
class Table:
    """Demonstrated goals, the most valuable first.

    Attributes:
        worth: V_d of each (goals,).
        place: where they are, in the coordinates of slopes (dim, goals) [m].
        cell: index of its cell of the grid (goals,).
    """

    worth: Float[np.ndarray, " goals"]
    place: Float[np.ndarray, "dim goals"]
    cell: Int[np.ndarray, " goals"]


def make_table(worth: Float[np.ndarray, " goals"], goal: Float[np.ndarray, "goals dim"]) -> Table:
    """Make the table of goals that are sorted already."""
    _, cell = np.unique(np.floor(goal[:, :2] / _CELL), axis=0, return_inverse=True)
    return Table(worth, np.ascontiguousarray(coordinates(goal).T), cell.reshape(-1))


class Search:
    """The search of one state.

    Args:
        table: goals to choose from.
        distance: from the puck to each goal (goals,) [m].
        radius: largest distance in Δ(s) [m].
        beta: least value in Δ(s).
        join: V_d, Ṽ_g → V_d ⊕ Ṽ_g.
        slopes: of the estimator; None trusts no slope.

    Attributes:
        best: largest V_d ⊕ Ṽ_g found, −∞ without any.
        chosen: its index in the table, −1 without any.
    """

    def __init__(
        self,
        table: Table,
        distance: Float[np.ndarray, " goals"],
        radius: float,
        beta: float,
        join: Callable[[np.ndarray, np.ndarray | float], np.ndarray],
        slopes: Slopes | None,
    ) -> None:
        self._table, self._distance, self._beta, self._join, self._slopes = table, distance, beta, join, slopes
        self._near = np.flatnonzero(distance <= radius)
        self._unseen = np.ones(len(self._near), dtype=bool)
        self._bound = np.ones(len(self._near), dtype=np.float32)  # of Ṽ_g
        self._left = np.arange(len(self._near))  # that may still be better, indices of the above
        self.best, self.chosen = -np.inf, -1

    @property
    def done(self) -> bool:
        """Whether no goal is left that could be better."""
        return len(self._left) == 0

    def propose(self) -> Int[np.ndarray, " goals"]:
        """Return the goals to evaluate next, as indices of the table."""
        self._asked = self._left if len(self._left) <= AT_ONCE else self._promising()
        return self._near[self._asked]

    def learn(self, value: Float[np.ndarray, " goals"]) -> None:
        """Take the values of the goals proposed last."""
        asked, goals = self._asked, self._near[self._asked]
        joined = np.where(value >= self._beta, self._join(self._table.worth[goals], value), -np.inf)
        top = int(joined.argmax())
        if joined[top] > self.best:
            self.best, self.chosen = float(joined[top]), int(goals[top])
        self._unseen[asked] = False
        if self._slopes is not None and (value > self._bound[asked] + _ROUNDING).any():
            self._slopes = None
            self._bound[:] = 1.0
            self._left = np.arange(len(self._near))
        self._narrow()
        if self._slopes is not None and len(self._left) > AT_ONCE:
            self._bound_neighbours(goals, value, self._slopes)
            self._narrow()

    def _bound_neighbours(
        self, goals: Int[np.ndarray, " goals"], value: Float[np.ndarray, " goals"], slopes: Slopes
    ) -> None:
        """Lower the bounds of goals that may still be better and that are within reach of evaluated ones."""
        place = self._table.place[:, self._near[self._left]]
        bound = np.zeros((len(goals), place.shape[1]), dtype=np.float32)
        for axis, there in zip(place, self._table.place[:, goals, None], strict=True):
            bound += np.square(axis - there)
        np.sqrt(bound, out=bound)
        far = bound > REACH
        bound *= slopes.at(self._distance[goals] - REACH)[:, None]
        bound += value[:, None]
        bound[far] = 1.0
        self._bound[self._left] = np.minimum(self._bound[self._left], bound.min(axis=0))

    def _narrow(self) -> None:
        """Leave out what has been seen and what cannot be better."""
        left = self._left[self._unseen[self._left]]
        bound = self._bound[left]
        better = self._join(self._table.worth[self._near[left]], bound) > self.best
        self._left = left[better & (bound >= self._beta)]

    def _promising(self) -> Int[np.ndarray, " goals"]:
        """Choose by bound, one of every cell before a second one of any."""
        promise = -self._join(self._table.worth[self._near[self._left]], self._bound[self._left])
        pool = np.argpartition(promise, _POOL)[:_POOL] if len(promise) > _POOL else np.arange(len(promise))
        order = pool[promise[pool].argsort(kind="stable")]
        _, first = np.unique(self._table.cell[self._near[self._left[order]]], return_index=True)
        later = np.ones(len(order), dtype=bool)
        later[first] = False
        first.sort()
        return self._left[order[np.concatenate([first, np.flatnonzero(later)])[:AT_ONCE]]]
