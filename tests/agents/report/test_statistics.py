"""Statistics over seeds against their definitions written out."""

import itertools

import numpy as np
import pytest
from rliable import library, metrics

from agents.report.paper import paper_result
from agents.report.statistics import (
    THRESHOLDS,
    as_column,
    difference,
    improvement,
    interquartile_mean,
    probability_of_improvement,
    profile,
)


def test_the_interquartile_mean_leaves_a_quarter_out_at_each_end():
    values = np.array([0.0, 0.0, 0.90, 0.92, 0.94, 0.96, 1.0, 1.0])
    found = interquartile_mean(as_column(values))
    assert found.value == pytest.approx(0.93)
    rng = np.random.default_rng(1)  # percentiles of the means of drawn seeds
    drawn = [np.sort(rng.choice(values, 8))[2:6].mean() for _ in range(4000)]
    assert (found.low, found.high) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.03)
    assert str(found).startswith("93.0 [")
    assert str(interquartile_mean(as_column([0.7]))) == "70.0"


def test_the_bootstrap_draws_within_each_column():
    """Of two columns whose runs are equal no draw can change the mean of the middle half."""
    found = interquartile_mean(np.array([[0.2, 0.8], [0.2, 0.8], [0.2, 0.8]]))
    assert (found.low, found.value, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_the_probability_of_improvement_counts_pairs():
    first, second = [0.1, 0.5, 0.5, 1.0], [0.5, 0.2, 0.0]
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(first, second)]
    found = improvement(as_column(first), as_column(second))
    assert found.value == pytest.approx(np.mean(pairs)) and found.low < found.value < found.high
    assert probability_of_improvement(as_column(second), as_column(first)) == pytest.approx(1 - found.value)
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 5, (6, 2)) / 4, rng.integers(0, 5, (4, 2)) / 4
    assert probability_of_improvement(x, y) == pytest.approx(metrics.probability_of_improvement(x, y))
    assert np.isnan(improvement(as_column([0.5]), as_column(second)).low)


def test_a_difference_of_means_has_the_percentiles_of_drawn_seeds():
    first, second = np.array([0.9, 1.0, 0.2, 0.8]), np.array([0.5, 0.1, 0.6])
    found = difference(as_column(first), as_column(second))
    assert found.value == pytest.approx(first.mean() - second.mean())
    rng = np.random.default_rng(3)
    drawn = [rng.choice(first, 4).mean() - rng.choice(second, 3).mean() for _ in range(4000)]
    assert (found.low, found.high) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.03)
    assert str(difference(as_column([0.4999]), as_column([0.5]))) == "0.0"


def test_intervals_are_repeated_exactly_and_leave_the_global_generator_alone():
    scores, others = as_column([0.1, 0.5, 0.9]), as_column([0.2, 0.6])
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    found = [(interquartile_mean(scores), improvement(scores, others)) for _ in range(2)]
    assert found[0] == found[1] and (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_a_profile_is_the_share_of_seeds_above_each_rate():
    scores = [0.2, 0.5, 0.5, 0.9]
    share, low, high = profile(as_column(scores))
    assert share.tolist() == [np.mean([score > tau for score in scores]) for tau in THRESHOLDS]
    assert share.tolist() == library.score_distributions(as_column(scores), THRESHOLDS).tolist()
    assert np.all(low <= share) and np.all(share <= high)


@pytest.mark.parametrize(
    "what, mean",
    [
        (("buffer+potential+annealing", "state", 1, 1), 99.0),
        (("potential", "state", 2, 2), 95.0),
        (("adril", "pointcloud", 1, 1), 20.8),
        (("bc", "state", 2, 20), 13.0),
        (("bc", "state", 1, 3), None),
        (("buffer", "pointcloud", 2, 2), None),
        (("buffer+potential+annealing+guide", "state", 1, 1), None),
    ],
)
def test_the_paper_s_cell(what, mean):
    assert paper_result(*what) == mean
