"""How far something long is: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
SECONDS_BETWEEN_LINES = 30


def say(line: str) -> None:
    """Print a line, above the bars if there are any."""
    tqdm.write(line)
    sys.stdout.flush()


class Meter:
    """Count up to a total and show it.

    Args:
        what: Name of what is counted, before every line and bar; may be empty.
        unit: What one is, "step".
        total: Where it ends.
        start: Where it begins.
        leave: Whether the bar stays on the terminal after its end.
    """

    def __init__(self, what: str, unit: str, total: int, start: int = 0, leave: bool = False) -> None:
        self.what, self.unit, self.total, self.first, self.count = what, unit, total, start, start
        self.begun = self.shown = time.monotonic()
        self.shown_at: int | None = None
        self.bar: Any = None
        if sys.stderr.isatty():
            self.bar = tqdm(desc=what or None, total=total, initial=start, unit=unit, leave=leave)

    def reach(self, count: int, note: str = "") -> None:
        """Have counted up to `count`; `note` is shown beside it."""
        before, self.count = self.count, count
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(count - before)
        elif time.monotonic() - self.shown > SECONDS_BETWEEN_LINES:
            self.show(note)

    def show(self, note: str = "") -> None:
        """Print a line, unless there is a bar or a line of this count."""
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
        """End the bar, or the lines if there are any."""
        if self.bar is not None:
            self.bar.close()
        elif self.shown_at is not None:
            self.show()


def counted(items: Collection[Item], what: str, unit: str) -> Iterator[Item]:
    """Iterate and show how far that is."""
    with closing(Meter(what, unit, len(items))) as meter:
        for count, item in enumerate(items, 1):
            yield item
            meter.reach(count)
