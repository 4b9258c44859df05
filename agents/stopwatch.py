"""Where the time of a process goes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Stopwatch:
    """Seconds by name. What is measured inside something else counts for the inner name alone.

    Attributes:
        seconds: So far, by name.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside = [0.0]  # of what was measured inside each of those that run
        self._start = time.perf_counter()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure the block."""
        self._inside.append(0.0)
        start = time.perf_counter()
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
        """Shares of the time since the construction, by name; "other" is what was not measured."""
        total = time.perf_counter() - self._start
        shares = {name: seconds / total for name, seconds in self.seconds.items()}
        return shares | {"other": 1.0 - sum(shares.values())}
