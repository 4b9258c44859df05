"""Where the time of a process goes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Stopwatch:
    """Seconds by name. What is measured inside something else counts for the inner name alone.

    Args:
        names: Of what will be measured; their shares are 0 until it is.
        rest: Name of the time that is not measured.

    Attributes:
        seconds: So far, by name.
    """

    def __init__(self, names: Iterable[str] = (), rest: str = "other") -> None:
        self.rest = rest
        self.seconds: dict[str, float] = defaultdict(float, dict.fromkeys(names, 0.0))
        self._inside = [0.0]  # of what was measured inside each of those that run
        self._start: float | None = None

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure the block."""
        self._inside.append(0.0)
        start = time.perf_counter()
        if self._start is None:
            self._start = start
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            self.seconds[name] += elapsed - self._inside.pop()
            self._inside[-1] += elapsed

    def watched(self, function: F, name: str) -> F:
        """Return the function, measured at every call."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            with self(name):
                return function(*args, **kwargs)

        return measured  # type: ignore[return-value]

    def shares(self) -> dict[str, float]:
        """Shares of the time since the first measurement began, by name; nothing before it."""
        if self._start is None:
            return {}
        total = time.perf_counter() - self._start
        shares = {name: seconds / total for name, seconds in self.seconds.items()}
        return shares | {self.rest: shares.get(self.rest, 0.0) + 1.0 - sum(shares.values())}


def describe_shares(shares: dict[str, float]) -> str:
    """Describe where the time went, in a line for each process."""
    lines = []
    for role in dict.fromkeys(name.partition("/")[0] for name in shares):
        parts = {name.partition("/")[2]: share for name, share in shares.items() if name.startswith(role)}
        ordered = sorted(parts.items(), key=lambda part: -part[1])
        lines.append(f"time of the {role}: " + ", ".join(f"{name} {share:.0%}" for name, share in ordered))
    return "\n".join(lines)
