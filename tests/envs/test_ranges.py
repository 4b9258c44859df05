"""Numbers out of range are refused by a line that names flag and range."""

import math
from types import SimpleNamespace

import pytest

from envs.ranges import check_range, check_ranges


@pytest.mark.parametrize(
    "limits, inside, outside",
    [
        ((0, 1), [0, 0.5, 1], [-1e-300, 1.1, -math.inf]),
        ((0, 1, "(]"), [1e-300, 1], [0, -0.0, 2]),
        ((0, 1, "()"), [0.5], [0, 1]),
        ((0, 2**32 - 1), [0, 2**32 - 1], [-1, 2**32, 10**30]),
    ],
)
def test_ends_belong_to_a_range_or_not(limits, inside, outside):
    for number in inside:
        check_range("size", number, limits)
    for number in [*outside, math.nan, math.inf]:
        with pytest.raises(ValueError, match=r"^--size is .*; it must lie in [\[(]0, \d+[\])]$"):
            check_range("size", number, limits)


def test_settings_are_named_as_their_flags_are():
    config = SimpleNamespace(learner=SimpleNamespace(batch_size=0), bounds=(1.0, math.nan), unset=None)
    check_ranges(config, {"unset": (0, 1)})
    with pytest.raises(ValueError, match=r"^--learner\.batch-size is 0; it must lie in \[1, 1000000\]$"):
        check_ranges(config, {"learner.batch_size": (1, 10**6)})
    with pytest.raises(ValueError, match=r"^--bounds is nan; it must lie in \[-0\.5, 2\]$"):
        check_ranges(config, {"bounds": (-0.5, 2.0)})
