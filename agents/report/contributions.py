"""What each part of a method, or a setting, contributes: rows of a comparison that differ in nothing else."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from agents import runs
from agents.config import METHODS
from agents.config.file import flat, unused
from agents.config.methods import Method
from agents.report.outcome import Groups, Outcome, columns
from agents.report.statistics import Interval, as_column, difference
from agents.report.table import Table

PARTS = ("buffer", "potential", "annealing", "guide")
COMPARED_PARTS = ("buffer", "potential", "potential+annealing", "potential+annealing+guide", "annealing", "guide")
"""What rows may differ in: a part, the paper's shaping, or all that the default has beside the buffer."""
COMPARED = ("learner.", "potential.", "encoder", "estimator", "demonstrations", "filter_key")
"""Settings that rows are compared by, by the beginning of their names."""
HEADINGS = (
    *("part", "task", "with it", "without it"),
    "environment steps",
    "success after them, difference [95 % interval]",
    "success over them, difference [95 % interval]",
)
EXPLANATION = (
    "What each part contributes: rows that differ in a part, or in potential and annealing (with the guide or without) "
    "together, after the steps that both have. Success after them is that of the last evaluation, interpolated between "
    "two; success over them is the mean of the learning curve from 0 on, which grows when the task is solved sooner. "
    "Differences of means in percentage points."
)


@dataclass(frozen=True)
class Contribution:
    """Two rows of a comparison that differ in a part.

    Attributes:
        part: Name of the part (`COMPARED_PARTS`), or setting with its two values.
        task: Column of the table of results.
        present: Label of the row with the part, or the first value.
        absent: Label of the other row.
        steps: Environment steps after which they are compared: those of the shortest run.
        final: Difference of the mean success rates after these steps.
        mean: Difference of the mean success rates over these steps.
    """

    part: str
    task: str
    present: str
    absent: str
    steps: int
    final: Interval
    mean: Interval


def contributions(groups: Groups) -> Iterator[Contribution]:
    """Yield the pairs of rows that differ in `COMPARED_PARTS`, or in one setting, ordered by the part."""
    for task, of_column in columns(groups).items():
        learning = {label: found for label, found in of_column.items() if not METHODS[found[0].method].imitation}
        rows = {label: (METHODS[found[0].method], _settings(found[0])) for label, found in learning.items()}
        named = [(_part(rows[present], rows[absent]), present, absent) for present, absent in permutations(rows, 2)]
        for part, present, absent in sorted(
            filter(itemgetter(0), named), key=lambda pair: (*COMPARED_PARTS, pair[0]).index(pair[0])
        ):
            pair = of_column[present], of_column[absent]
            steps = min(run.environment_steps for found in pair for run in found)
            final, mean = (
                difference(*(as_column([measure(run, steps) for run in found]) for found in pair))
                for measure in (success_after, success_over)
            )
            yield Contribution(part, task, present, absent, steps, final, mean)


def contributions_table(groups: Groups) -> Table:
    """Return the table of contributions; without rows if no two rows of the results differ in one part."""
    rows = [
        [one.part, one.task, one.present, one.absent, str(one.steps), str(one.final), str(one.mean)]
        for one in contributions(groups)
    ]
    return Table("contributions", HEADINGS, rows, EXPLANATION, names=4)


def success_after(run: Outcome, steps: int) -> float:
    """Return the success rate after a number of environment steps, interpolated between evaluations."""
    return float(np.interp(steps, [0, *run.steps], [0, *run.rates]))


def success_over(run: Outcome, steps: int) -> float:
    """Return the mean of the success rate from 0 to a number of environment steps, interpolated likewise."""
    places = np.array([0, *(step for step in run.steps if step < steps), steps])
    rates = np.array([success_after(run, place) for place in places])
    return float(np.diff(places) @ (rates[1:] + rates[:-1]) / 2 / steps)


def _settings(run: Outcome) -> dict[str, Any]:
    config = runs.read_config(Path(run.directory))
    idle = unused(config)
    return {name: value for name, value in flat(config).items() if name.startswith(COMPARED) and name not in idle}


def _part(present: tuple[Method, Mapping[str, Any]], absent: tuple[Method, Mapping[str, Any]]) -> str:
    """Return the part of `COMPARED_PARTS` that only the first row has; empty if they differ otherwise."""
    (of, settings), (over, others) = present, absent
    more = [part for part in PARTS if getattr(of, part) > getattr(over, part)]
    less = [part for part in PARTS if getattr(of, part) < getattr(over, part)]
    other = [name for name in settings.keys() & others.keys() if settings[name] != others[name]]
    if "+".join(more) in COMPARED_PARTS and not less and not other:
        return "+".join(more)
    if not more and not less and len(other) == 1:
        (name,) = other
        return "" if str(settings[name]) > str(others[name]) else f"{name} {settings[name]} / {others[name]}"
    return ""
