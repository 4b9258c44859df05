"""Ranges of numeric settings, declared in their annotations: ``seed: Annotated[int, Range(0, 10)] = 0``."""

import dataclasses
from dataclasses import dataclass
from typing import Any, get_type_hints

MANY = 10**9  # upper bound of counts, far above practical values


@dataclass(frozen=True)
class Range:
    """Interval in which a number, or each number of a tuple, must lie.

    Attributes:
        low: Lower end.
        high: Upper end.
        ends: Closed or open ends: "[]", "(]", "[)" or "()".
    """

    low: float
    high: float
    ends: str = "[]"

    def __str__(self) -> str:
        low, high = (str(end) if isinstance(end, int) else f"{end:g}" for end in (self.low, self.high))
        return f"{self.ends[0]}{low}, {high}{self.ends[1]}"

    def __contains__(self, value: float) -> bool:
        above = self.low < value if self.ends[0] == "(" else self.low <= value
        return above and (value < self.high if self.ends[1] == ")" else value <= self.high)


SEED = Range(0, 2**32 - 1)
COUNT = Range(1, MANY)


def check_range(name: str, value: float, limits: Range) -> None:
    """Check that a number is in its range.

    Raises:
        ValueError: It is out of range or NaN; the message names the flag and the range.
    """
    if value not in limits:
        raise ValueError(f"--{name.replace('_', '-')} is {value}; it must lie in {limits}")


def check_ranges(config: Any, prefix: str = "") -> None:
    """Check the numbers of a dataclass and of nested dataclasses against the ranges in their annotations.

    Fields that are None are ignored.

    Raises:
        ValueError: A number is out of range or NaN; the message names the flag and the range.
    """
    for name, kind in get_type_hints(type(config), include_extras=True).items():
        value = getattr(config, name)
        if dataclasses.is_dataclass(value):
            check_ranges(value, f"{prefix}{name}.")
        for limits in (item for item in getattr(kind, "__metadata__", ()) if isinstance(item, Range)):
            for number in value if isinstance(value, tuple) else (value,):
                if number is not None:
                    check_range(prefix + name, number, limits)
