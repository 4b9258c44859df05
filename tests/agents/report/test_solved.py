"""Time to the solved task: what counts, and how the table shows it."""

import dataclasses
import itertools
import math

import pytest

from agents.report.outcome import Outcome, solved
from agents.report.table import HEADINGS, median_and_worst, results_table


def test_two_consecutive_evaluations_count():
    """All sequences of six evaluations below, at and above the threshold."""
    for rates in itertools.product((0.5, 0.9, 1.0), repeat=6):
        rows = [{"step": 10.0 * i, "eval/success_rate": rate} for i, rate in enumerate(rates)]
        pairs = [second for second in range(1, 6) if min(rates[second - 1 : second + 1]) >= 0.9]
        assert solved(rows, 0.9) == (rows[pairs[0]] if pairs else None)
    assert solved([], 0.9) is None


@pytest.mark.parametrize(
    "values, shown",
    [
        ((3.0, 1.0, 2.0), "2 / 3"),
        ((3.0, None, 2.0), "3 / -"),
        ((None, None, 2.0), "- / -"),
        ((1.0, 3.0, None, None), "- / -"),
        ((1.0, 3.0, 5.0, None), "4 / -"),
    ],
)
def test_a_seed_that_never_solved_took_infinitely_long(values, shown):
    assert median_and_worst(values) == shown


def outcome(rate, steps=None, **changed):
    times = (10.0, 20.0)
    known = ("run", "push-slot", "buffer", "state", 1, 1, rate, 30.0 if rate else None, 100, 1800.0, None)
    made = Outcome(*known, steps, steps and 6.0 * steps, steps, steps and 3.0 * steps, times, (), times)
    return dataclasses.replace(made, **changed)


def test_the_final_policies_of_all_seeds_count():
    runs = [outcome(1.0, 10, mean_steps=20.0), outcome(0.5, 20), outcome(0.0, environment_steps=50)]
    cells = results_table({"state sparse": runs}).markdown().splitlines()[-1].strip("| ").split(" | ")
    shown = dict(zip(HEADINGS, cells, strict=True))
    assert shown == {
        "runs": "state sparse",
        "seeds": "3",
        "success, mean ± std [%]": f"50.0 ± {100 * math.sqrt(1 / 6):.1f}",
        "interquartile mean [95 % interval]": "50.0 [0.0, 100.0]",
        "worst / Q1 / median / Q3": "0 / 25 / 50 / 75",
        "better than the reference [95 % interval]": "reference",
        "paper [%]": "30",
        "steps to the goal": "25.0",
        "solved": "2",
        "steps until solved, median / worst": "20 / -",
        "minutes, median / worst": "2.0 / -",
        "steps to 90 %, median / worst": "20 / -",
        "minutes to 90 %, median / worst": "1.0 / -",
        "training steps": "50–100",
        "hours": "1.50",
    }


def test_rows_are_compared_within_their_column():
    """With the row of the named method, or else the first of the column."""
    groups = {
        "a": [outcome(1.0), outcome(0.5)],
        "b": [outcome(0.5, method="sparse")],
        "c": [outcome(0.5, method="potential", obs="pointcloud"), outcome(0.9, method="potential", obs="pointcloud")],
        "d": [outcome(0.7, obs="pointcloud")],
    }
    place = HEADINGS.index("better than the reference [95 % interval]")
    assert [row[place] for row in results_table(groups, "sparse").rows] == ["75.0", "reference", "reference", "50.0"]
    assert [row[place] for row in results_table(groups).rows] == ["reference", "25.0", "reference", "50.0"]
