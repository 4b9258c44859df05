"""Progress display: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
SECONDS_BETWEEN_LINES = 30


def say(line: str) -> None:
    """Print a line, above the progress bars if there are any."""
    tqdm.write(line)
    sys.stdout.flush()


class Meter:
    """Counter that shows its progress towards a total.

    Args:
        what: Prefix of every line and of the bar; may be empty.
        unit: Unit of the count in the singular, such as "step".
        total: Final count.
        start: Initial count.
        leave: Whether the bar stays on the terminal when it is closed.
    """

    def __init__(self, what: str, unit: str, total: int, start: int = 0, leave: bool = False) -> None:
        self.what, self.unit, self.total, self.first, self.count = what, unit, total, start, start
        self.begun = self.shown = time.monotonic()
        self.shown_at: int | None = None
        self.bar: Any = None
        if sys.stderr.isatty():
            self.bar = tqdm(desc=what or None, total=total, initial=start, unit=unit, leave=leave)

    def reach(self, count: int, note: str = "") -> None:
        """Set the count, and show `note` beside it."""
        before, self.count = self.count, count
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(count - before)
        elif time.monotonic() - self.shown > SECONDS_BETWEEN_LINES:
            self.show(note)

    def show(self, note: str = "") -> None:
        """Print a line, unless there is a bar or this count was printed already."""
        if self.bar is not None or self.shown_at == self.count:
            return
        self.shown, self.shown_at = time.monotonic(), self.count
        parts = [f"{self.count}/{self.total} {self.unit}s"]
        if self.count > self.first:
            rate = (self.count - self.first) / max(self.shown - self.begun, 1e-9)
            left = (self.total - self.count) / rate / 60
            parts += [f"{rate:.{int(rate < 10)}f} {self.unit}s/s", f"{left:.0f} min left"]
        parts += [note] * bool(note)
        print(f"{self.what}: " * bool(self.what) + ", ".join(parts), flush=True)

    def close(self) -> None:
        """Close the bar, or print a last line if lines were printed before."""
        if self.bar is not None:
            self.bar.close()
        elif self.shown_at is not None:
            self.show()


def counted(items: Collection[Item], what: str, unit: str) -> Iterator[Item]:
    """Iterate over `items` and show the progress."""
    with closing(Meter(what, unit, len(items))) as meter:
        for count, item in enumerate(items, 1):
            yield item
            meter.reach(count)
