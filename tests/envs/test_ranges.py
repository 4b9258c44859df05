"""Numbers out of range are refused by a line that names flag and range."""

import math
from dataclasses import dataclass
from typing import Annotated

import pytest

from envs.ranges import Range, check_range, check_ranges


@pytest.mark.parametrize(
    "limits, inside, outside",
    [
        (Range(0, 1), [0, 0.5, 1], [-1e-300, 1.1, -math.inf]),
        (Range(0, 1, "(]"), [1e-300, 1], [0, -0.0, 2]),
        (Range(0, 1, "()"), [0.5], [0, 1]),
        (Range(0, 2**32 - 1), [0, 2**32 - 1], [-1, 2**32, 10**30]),
    ],
)
def test_ends_belong_to_a_range_or_not(limits, inside, outside):
    for number in inside:
        check_range("size", number, limits)
    for number in [*outside, math.nan, math.inf]:
        with pytest.raises(ValueError, match=r"^--size is .*; it must lie in [\[(]0, \d+[\])]$"):
            check_range("size", number, limits)


@dataclass(frozen=True)
class Part:
    batch_size: Annotated[int, Range(1, 10**6)] = 1


@dataclass(frozen=True)
class Whole:
    learner: Part = Part()
    bounds: Annotated[tuple[float, float], Range(-0.5, 2.0)] = (0.0, 2.0)
    unset: Annotated[float | None, Range(0, 1)] = None
    anything: float = math.inf


def test_settings_are_named_as_their_flags_are():
    check_ranges(Whole())
    with pytest.raises(ValueError, match=r"^--learner\.batch-size is 0; it must lie in \[1, 1000000\]$"):
        check_ranges(Whole(learner=Part(0)))
    with pytest.raises(ValueError, match=r"^--bounds is nan; it must lie in \[-0\.5, 2\]$"):
        check_ranges(Whole(bounds=(1.0, math.nan)))
