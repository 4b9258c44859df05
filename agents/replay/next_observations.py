"""What follows each row of a ring buffer, stored once."""

from typing import Any

import numpy as np


class Following:
    """Array of what follows each row of a ring, which keeps aside only what is not the ring's next row.

    Within an episode the next observation is the observation of the next row. It is another one where an episode ends,
    for whichever reason, and after the newest row, which the ring's oldest follows. A row that is written tells by
    its bytes whether it continues the row before.

    Reading and writing look like NumPy's, so that Stable-Baselines3's `ReplayBuffer` can do both.

    Args:
        rows: The ring (rows, environments, …). Row i + 1 is written after row i, and before what follows it.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        self.place = np.zeros(len(rows), np.int32)  # in `kept`; 0: the next row follows
        self.kept = np.zeros((2, *rows.shape[1:]), rows.dtype)
        self.free = [1]

    @property
    def nbytes(self) -> int:
        """Bytes beside the ring's."""
        return self.place.nbytes + self.kept.nbytes

    def __setitem__(self, row: int, values: np.ndarray) -> None:
        """Put what follows the row written last, values (environments, …)."""
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
        """Return what follows `rows` of `environments`, integers (B,) each, as an array (B, …)."""
        rows, environments, *_ = index
        values = self.rows[(rows + 1) % len(self.rows), environments]
        place = self.place[rows]
        kept = np.flatnonzero(place)
        values[kept] = self.kept[place[kept], environments[kept]]
        return values

    def continues(self, rows: np.ndarray, environments: np.ndarray) -> np.ndarray:
        """Whether the ring's next row is what follows `rows` of `environments`, integers (B,) each, shape (B,).

        A row that ends an episode in one environment is kept aside for all of them.
        """
        kept, following = (
            self.kept[self.place[rows], environments],
            self.rows[(rows + 1) % len(self.rows), environments],
        )
        return (self.place[rows] == 0) | (kept == following).reshape(len(rows), -1).all(axis=1)

    def after(self, row: int) -> np.ndarray:
        """Return what follows one row, in every environment (environments, …)."""
        place = self.place[row]
        return self.kept[place] if place else self.rows[(row + 1) % len(self.rows)]

    def filled(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of the first `count` rows something else than the next row follows, and what, in their order.

        The last of them is always one: in a larger ring another row would come next.
        """
        apart = self.place[:count] > 0
        apart[-1:] = True
        values = self.kept[self.place[:count][apart]]
        if count:
            values[-1] = self.after(count - 1)
        return apart, values

    def fill(self, apart: np.ndarray, values: np.ndarray, count: int) -> None:
        """Put back what `filled` returned for the first `count` rows.

        Raises:
            ValueError: It does not fit this ring.
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
