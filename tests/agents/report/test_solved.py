"""Time to the solved task: what counts, and how the table shows it."""

import dataclasses
import itertools
import math
import re

import numpy as np
import pytest

from agents.report.outcome import Outcome, solved
from agents.report.table import HEADINGS, interquartile_mean, median_and_worst, results_table


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
    made = Outcome(
        "run", rate, 30.0 if rate else None, 100, 1800.0, None, steps, steps and 6.0 * steps, times, (), times
    )
    return dataclasses.replace(made, **changed)


def test_the_final_policies_of_all_seeds_count():
    runs = [outcome(1.0, 10, mean_steps=20.0), outcome(0.5, 20), outcome(0.0, environment_steps=50)]
    cells = results_table({"state sparse": runs}).splitlines()[-1].strip("| ").split(" | ")
    shown = dict(zip(HEADINGS, cells, strict=True))
    assert shown == {
        "runs": "state sparse",
        "seeds": "3",
        "success, mean ± std [%]": f"50.0 ± {100 * math.sqrt(1 / 6):.1f}",
        "interquartile mean [95 % interval]": "50.0 [0.0, 100.0]",
        "worst / Q1 / median / Q3": "0 / 25 / 50 / 75",
        "steps to the goal": "25.0",
        "solved": "2",
        "steps until solved, median / worst": "20 / -",
        "minutes, median / worst": "2.0 / -",
        "training steps": "50–100",
        "hours": "1.50",
    }


def test_the_interquartile_mean_leaves_a_quarter_out_at_each_end():
    values = np.array([0.0, 0.0, 90.0, 92.0, 94.0, 96.0, 100.0, 100.0])
    assert interquartile_mean(values).startswith("93.0 [")
    low, high = (float(bound) for bound in re.findall(r"[\d.]+", interquartile_mean(values))[1:])
    rng = np.random.default_rng(1)  # the interval of the percentiles of means of drawn seeds, written out
    drawn = [np.sort(rng.choice(values, 8))[2:6].mean() for _ in range(4000)]
    assert (low, high) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=3.0)
    assert interquartile_mean(np.array([70.0])) == "70.0"
