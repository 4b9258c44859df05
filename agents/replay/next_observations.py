"""Next observations of a ring buffer without duplicates of its rows."""

from typing import Any

import numpy as np


class Following:
    """Array of the successors of the rows of a ring, which stores only those that differ from the ring's next row.

    Within an episode, the next observation is the observation of the next row. It differs from that at the end of an
    episode, for whichever reason, and after the newest row, whose next row in the ring is the oldest. When a row is
    written, its bytes are compared with the successor of the row before to decide whether it continues that row.

    The class supports NumPy's indexing as far as Stable-Baselines3's `ReplayBuffer` uses it.

    Args:
        rows: Ring (rows, environments, …). Row i + 1 is written after row i, and before its own successor.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        self.place = np.zeros(len(rows), np.int32)  # index in `kept`; 0: the successor is the next row
        self.kept = np.zeros((2, *rows.shape[1:]), rows.dtype)
        self.free = [1]

    @property
    def nbytes(self) -> int:
        """Memory in addition to the ring [bytes]."""
        return self.place.nbytes + self.kept.nbytes

    def __setitem__(self, row: int, values: np.ndarray) -> None:
        """Set the successor of the row written last, values (environments, …)."""
        place = self.place[row - 1]
        if place and self.rows[row].tobytes() == self.kept[place].tobytes():
            self.place[row - 1] = 0
        else:
            place = self._free_place()
        if self.place[row]:
            self.free.append(int(self.place[row]))
        self.place[row] = place
        self.kept[place] = values

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        """Return the successors (B, …) of `rows` in `environments`, integers (B,) each."""
        rows, environments, *_ = index
        values = self.rows[(rows + 1) % len(self.rows), environments]
        place = self.place[rows]
        kept = np.flatnonzero(place)
        values[kept] = self.kept[place[kept], environments[kept]]
        return values

    def continues(self, rows: np.ndarray, environments: np.ndarray) -> np.ndarray:
        """Return where the next row is the successor of `rows` in `environments`, integers (B,) each, shape (B,).

        If an episode ends in one environment, the successors are stored separately for all environments.
        """
        kept, following = (
            self.kept[self.place[rows], environments],
            self.rows[(rows + 1) % len(self.rows), environments],
        )
        return (self.place[rows] == 0) | (kept == following).reshape(len(rows), -1).all(axis=1)

    def after(self, row: int) -> np.ndarray:
        """Return the successor of one row in every environment (environments, …)."""
        place = self.place[row]
        return self.kept[place] if place else self.rows[(row + 1) % len(self.rows)]

    def filled(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the first `count` rows have a successor other than the next row, and these successors.

        The last of the rows is always included, because another row would follow it in a larger ring.
        """
        apart = self.place[:count] > 0
        apart[-1:] = True
        values = self.kept[self.place[:count][apart]]
        if count:
            values[-1] = self.after(count - 1)
        return apart, values

    def fill(self, apart: np.ndarray, values: np.ndarray, count: int) -> None:
        """Restore the values returned by `filled` for the first `count` rows.

        Raises:
            ValueError: The values do not fit this ring.
        """
        found = np.count_nonzero(apart)
        if apart.shape != (count,) or values.shape != (found, *self.rows.shape[1:]):
            raise ValueError("stored transitions do not fit the replay buffer: what follows them")
        self.place[:] = 0
        self.place[:count] = np.where(apart, np.cumsum(apart != 0), 0)
        self.kept = np.zeros((found + 2, *values.shape[1:]), self.rows.dtype)
        self.kept[1:-1] = values
        self.free = [found + 1]

    def _free_place(self) -> int:
        if not self.free:
            size = len(self.kept)
            self.free += range(size, 2 * size)
            self.kept = np.concatenate([self.kept, np.zeros_like(self.kept)])
        return self.free.pop()
