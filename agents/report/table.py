"""Tables of a report, and the table of results."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.report.outcome import SLOT, Groups, Outcome, columns
from agents.report.paper import paper_result
from agents.report.statistics import Scores, as_column, improvement, interquartile_mean

PAPER = (
    "Paper: mean in the paper's table, of the sum, with its own settings and encoder, after 200k environment steps on "
    "states and 400k on clouds."
)
HEADINGS = (
    "runs",
    "seeds",
    "success, mean ± std [%]",
    "interquartile mean [95 % interval]",
    "worst / Q1 / median / Q3",
    "better than the reference [95 % interval]",
    "paper [%]",
    "steps to the goal",
    "solved",
    "steps until solved, median / worst",
    "minutes, median / worst",
    "steps to 90 %, median / worst",
    "minutes to 90 %, median / worst",
    "training steps",
    "hours",
)


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        name: Its name in the page.
        headings: Headings of the columns.
        rows: Cells of each row.
        text: Paragraph above it.
        names: Number of columns of names, which come first; the others have numbers.
    """

    name: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: str = ""
    names: int = 1

    def markdown(self) -> str:
        """Return the paragraph and the table in Markdown."""
        heading, *rows = (
            f"| {' | '.join(row)} |" for row in (self.headings, *(map(_escaped, row) for row in self.rows))
        )
        return "\n".join([*[self.text, ""] * bool(self.text), heading, "|---" * len(self.headings) + "|", *rows]) + "\n"


def _escaped(cell: str) -> str:
    """Return the text of a cell without what Markdown takes for markup."""
    return " ".join(cell.replace("|", r"\|").replace("<", "&lt;").split())


def results_table(groups: Groups, reference: str | None = None) -> Table:
    """Return the table of results, with one row per group.

    Success rates are shown as in the paper's table, with the probability that a seed is better than one of the
    reference, and steps and time until the task was solved. The time of a seed that did not solve the task is infinite.

    Args:
        groups: Outcomes of the seeds by label.
        reference: Method that the others of a column are compared with; None, or one that the column does not have,
            takes the first row.
    """
    rows = []
    for of_column in columns(groups).values():
        named = [outcomes for outcomes in of_column.values() if outcomes[0].method == reference]
        compared = (named or list(of_column.values()))[0]
        rows += [_row(label, outcomes, compared) for label, outcomes in of_column.items()]
    return Table("results", HEADINGS, rows)


def rates(outcomes: Sequence[Outcome]) -> Scores:
    """Return the success rates of runs as the scores of one column."""
    return as_column([run.success_rate for run in outcomes])


def _row(label: str, outcomes: Sequence[Outcome], reference: Sequence[Outcome]) -> list[str]:
    rate = 100 * np.array([run.success_rate for run in outcomes])
    steps = [run.mean_steps for run in outcomes if run.mean_steps is not None]
    taken = [run.environment_steps for run in outcomes]
    paper = paper_of(outcomes[0])
    return [
        label,
        str(len(outcomes)),
        f"{rate.mean():.1f} ± {rate.std():.1f}",
        str(interquartile_mean(rates(outcomes))),
        " / ".join(f"{value:.0f}" for value in np.percentile(rate, [0, 25, 50, 75])),
        "reference" if outcomes is reference else str(improvement(rates(outcomes), rates(reference))),
        "-" if paper is None else f"{paper:g}",
        f"{np.mean(steps):.1f}" if steps else "-",
        str(sum(run.solved_steps is not None for run in outcomes)),
        median_and_worst([run.solved_steps for run in outcomes]),
        median_and_worst([run.solved_seconds and run.solved_seconds / 60 for run in outcomes], 1),
        median_and_worst([run.reached_steps for run in outcomes]),
        median_and_worst([run.reached_seconds and run.reached_seconds / 60 for run in outcomes], 1),
        "–".join(map(str, sorted({min(taken), max(taken)}))),
        f"{sum(run.seconds for run in outcomes) / 3600:.2f}",
    ]


def paper_of(run: Outcome) -> float | None:
    """Return the paper's mean success rate [%] for a run; None if the paper does not have it."""
    return paper_result(run.method, run.obs, run.grids, run.demonstrations) if run.task == SLOT else None


def median_and_worst(values: Sequence[float | None], digits: int = 0) -> str:
    """Format the median and the maximum of values of which None is infinite; infinite ones are shown as "-"."""
    known = [math.inf if value is None else value for value in values]
    return " / ".join("-" if math.isinf(v) else f"{v:.{digits}f}" for v in (float(np.median(known)), max(known)))
