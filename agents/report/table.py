"""Results table in Markdown."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.stats import bootstrap, trim_mean

from agents.report.outcome import Outcome

HEADINGS = (
    "runs",
    "seeds",
    "success, mean ± std [%]",
    "interquartile mean [95 % interval]",
    "worst / Q1 / median / Q3",
    "steps to the goal",
    "solved",
    "steps until solved, median / worst",
    "minutes, median / worst",
    "training steps",
    "hours",
)


def results_table(groups: dict[str, list[Outcome]]) -> str:
    """Format success rates as the paper's table, and steps and time until the task was solved, one row per group.

    The time of a seed that did not solve the task is infinite.
    """
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for label, outcomes in groups.items():
        rate = 100 * np.array([run.success_rate for run in outcomes])
        steps = [run.mean_steps for run in outcomes if run.mean_steps is not None]
        taken = [run.environment_steps for run in outcomes]
        cells = [
            label,
            str(len(outcomes)),
            f"{rate.mean():.1f} ± {rate.std():.1f}",
            interquartile_mean(rate),
            " / ".join(f"{value:.0f}" for value in np.percentile(rate, [0, 25, 50, 75])),
            f"{np.mean(steps):.1f}" if steps else "-",
            str(sum(run.solved_steps is not None for run in outcomes)),
            median_and_worst([run.solved_steps for run in outcomes]),
            median_and_worst([run.solved_seconds and run.solved_seconds / 60 for run in outcomes], 1),
            "–".join(map(str, sorted({min(taken), max(taken)}))),
            f"{sum(run.seconds for run in outcomes) / 3600:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def interquartile_mean(values: np.ndarray) -> str:
    """Format the interquartile mean with its bootstrap interval (Agarwal et al. 2021); one value has no interval."""
    trimmed = partial(trim_mean, proportiontocut=0.25)
    mean = trimmed(values)
    if len(values) < 2:
        return f"{mean:.1f}"
    found = bootstrap((values,), trimmed, method="percentile", n_resamples=2000, rng=0).confidence_interval
    return f"{mean:.1f} [{found.low:.1f}, {found.high:.1f}]"


def median_and_worst(values: Sequence[float | None], digits: int = 0) -> str:
    """Format the median and the maximum of values of which None is infinite; infinite ones are shown as "-"."""
    known = [math.inf if value is None else value for value in values]
    return " / ".join("-" if math.isinf(v) else f"{v:.{digits}f}" for v in (float(np.median(known)), max(known)))
