"""Ranges of the numbers that a command takes."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

# Lower and upper end, and how the interval is written where one of them does not belong to it: "(]", "[)" or "()".
Range = tuple[float, float] | tuple[float, float, str]

SEED: Range = (0, 2**32 - 1)
MANY = 10**9  # of whatever is counted, far above any use


def check_range(name: str, value: float, limits: Range) -> None:
    """Check a number.

    Raises:
        ValueError: It is out of range, or not a number; names the flag and the range.
    """
    low, high, (left, right) = (*limits, "[]")[:3]
    above = low < value if left == "(" else low <= value
    below = value < high if right == ")" else value <= high
    if not (above and below):
        flag = f"--{name.replace('_', '-')}"
        raise ValueError(f"{flag} is {value}; it must lie in {left}{_written(low)}, {_written(high)}{right}")


def check_ranges(config: Any, ranges: Mapping[str, Range]) -> None:
    """Check the settings of a configuration, by their names in it; those that are None are not set.

    Raises:
        ValueError: One is out of range, or not a number; names the flag and the range.
    """
    for name, limits in ranges.items():
        value = attrgetter(name)(config)
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None:
                check_range(name, number, limits)


def _written(end: float) -> str:
    return str(end) if isinstance(end, int) else f"{end:g}"
