"""Statistics over few runs, by rliable.

Reference: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice", NeurIPS 2021.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from agents.collecting.randomness import drawing_from, seeded

REPETITIONS = 2000  # of the bootstrap
THRESHOLDS = np.linspace(0, 1, 51)  # success rates of a performance profile

Scores = Float[np.ndarray, "runs columns"]


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % stratified bootstrap interval; NaN bounds if a column has a single run."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = (f"{round(100 * x, 1) + 0.0:.1f}" for x in (self.value, self.low, self.high))  # no -0.0
        return value if np.isnan(self.low) else f"{value} [{low}, {high}]"


def interquartile_mean(scores: Scores) -> Interval:
    """Return the mean of the middle half of the scores, over all runs and columns; the columns are the strata."""
    from rliable import metrics  # imported here and below, since it takes two seconds

    return _interval(metrics.aggregate_iqm, scores)


def difference(of: Scores, over: Scores) -> Interval:
    """Return the difference of the mean scores with its interval."""
    return _interval(lambda first, second: first.mean() - second.mean(), of, over)


def improvement(of: Scores, over: Scores) -> Interval:
    """Return `probability_of_improvement` with its interval."""
    return _interval(probability_of_improvement, of, over)


def probability_of_improvement(of: Scores, over: Scores) -> float:
    """Return the probability that a run of one method scores more than one of another, mean over the columns.

    A tie counts one half. It is `rliable.metrics.probability_of_improvement` without its test of significance, which
    takes most of its time.
    """
    return float(0.5 + 0.5 * np.sign(of[:, None] - over[None]).mean())


def profile(scores: Scores) -> Float[np.ndarray, "3 thresholds"]:
    """Return the shares of runs that score more than each of `THRESHOLDS`, and the bounds of their intervals.

    They are those of `rliable.library.create_performance_profile`, for all thresholds at once.
    """
    return _estimates(lambda drawn: (drawn[..., None] > THRESHOLDS).mean((0, 1)), scores)


def as_column(scores: Sequence[float]) -> Scores:
    """Return the scores of one column."""
    return np.array(scores, dtype=float)[:, None]


def _interval(function: Callable[..., float], *scores: Scores) -> Interval:
    if min(len(part) for part in scores) < 2:
        return Interval(float(function(*scores)), np.nan, np.nan)
    value, low, high = _estimates(lambda *drawn: np.array([function(*drawn)]), *scores)[:, 0]
    return Interval(float(value), float(low), float(high))


def _estimates(function: Callable[..., np.ndarray], *scores: Scores) -> Float[np.ndarray, "3 values"]:
    """Return the values of a function of the scores, and the bounds of their intervals."""
    from rliable import library

    given = scores[0] if len(scores) == 1 else list(scores)
    with drawing_from(seeded(0)):  # rliable draws from NumPy's global generator
        values, bounds = library.get_interval_estimates({"": given}, function, reps=REPETITIONS)
    return np.stack([values[""], *bounds[""]])
