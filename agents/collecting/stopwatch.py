"""Stopwatch for the time shares of a process."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Stopwatch:
    """Measurement of seconds by name; the time of a nested measurement counts only for the inner name.

    Args:
        names: Names that are reported with share 0 before their first measurement.
        rest: Name of the time that is not measured.

    Attributes:
        seconds: Measured time so far by name [s].
    """

    def __init__(self, names: Iterable[str] = (), rest: str = "other") -> None:
        self.rest = rest
        self.seconds: dict[str, float] = defaultdict(float, dict.fromkeys(names, 0.0))
        self._inside = [0.0]  # time of nested measurements in each running measurement
        self._start: float | None = None

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure the duration of the context."""
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
        """Return a function that calls `function` and measures its duration."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            with self(name):
                return function(*args, **kwargs)

        return measured  # type: ignore[return-value]

    def shares(self) -> dict[str, float]:
        """Return the shares of the time since the start of the first measurement by name; empty before that."""
        if self._start is None:
            return {}
        total = time.perf_counter() - self._start
        shares = {name: seconds / total for name, seconds in self.seconds.items()}
        return shares | {self.rest: shares.get(self.rest, 0.0) + 1.0 - sum(shares.values())}


def describe_shares(shares: dict[str, float]) -> str:
    """Describe the time shares in one line per process."""
    lines = []
    for role in dict.fromkeys(name.partition("/")[0] for name in shares):
        parts = {name.partition("/")[2]: share for name, share in shares.items() if name.startswith(role)}
        ordered = sorted(parts.items(), key=lambda part: -part[1])
        lines.append(f"time of the {role}: " + ", ".join(f"{name} {share:.0%}" for name, share in ordered))
    return "\n".join(lines)
