"""Outcome of a finished run: its result, its learning curve, and when it solved the task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents import runs
from agents.runs.log import PROGRESS, Row, read_progress

THRESHOLD, THRESHOLD_SEEN = 0.95, 0.90
"""Success rate at which the task counts as solved; it is lower for the pushing task's clouds and images, because they
contain no velocity and parts of the puck can be hidden."""
SEEN = ("pointcloud", "rgbd")
SLOT = "push-slot"
"""The paper's task."""
REACHED = 0.90
"""Success rate of "steps to 90 %", for all observations."""
IN_A_ROW = 2
"""Number of consecutive evaluations that must reach the threshold, so that a single lucky evaluation does not count."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a finished run.

    Attributes:
        directory: Run directory.
        task: Name of the task.
        method: Name of the method.
        obs: Observation type.
        grids: Number of active reset grids.
        demonstrations: Number of demonstrations.
        success_rate: Success rate of the last policy on new episodes.
        mean_steps: Mean steps of its successful episodes; None without one.
        environment_steps: Environment steps of the training.
        seconds: Duration of the training [s].
        others: Load by other processes during the training [cores]; None if it was not measured.
        solved_steps: Environment steps until the task was solved (`solved`); None if it was not.
        solved_seconds: Seconds until then; None if it was not solved, or the log has no times.
        reached_steps: Environment steps until `REACHED` was reached likewise.
        reached_seconds: Seconds until then.
        steps: Environment steps at the evaluations (n,).
        minutes: Minutes from the start of the training until their results were known (n,), or empty without times.
        rates: Success rates of the evaluations (n,).
    """

    directory: str
    task: str
    method: str
    obs: str
    grids: int
    demonstrations: int
    success_rate: float
    mean_steps: float | None
    environment_steps: int
    seconds: float
    others: float | None
    solved_steps: int | None
    solved_seconds: float | None
    reached_steps: int | None
    reached_seconds: float | None
    steps: tuple[float, ...]
    minutes: tuple[float, ...]
    rates: tuple[float, ...]


Groups = Mapping[str, Sequence[Outcome]]
"""Outcomes of the seeds of each row of a comparison, by the row's label."""


def columns(groups: Groups) -> dict[str, dict[str, Sequence[Outcome]]]:
    """Return the rows of each column of the paper's table, such as "state, 2 grids"."""
    found: dict[str, dict[str, Sequence[Outcome]]] = {}
    for label, outcomes in groups.items():
        first = outcomes[0]
        of = f"{first.grids} grid{'s' * (first.grids > 1)}" if first.task == SLOT else first.task
        found.setdefault(f"{first.obs}, {of}", {})[label] = outcomes
    return found


def read_outcome(directory: Path) -> Outcome:
    """Read the outcome of a finished run.

    Raises:
        FileNotFoundError: The run is not finished.
        ValueError: A file is damaged.
    """
    config, result = runs.read_config(directory), runs.read_result(directory)
    rows = [row for row in read_progress(directory / PROGRESS) if "eval/success_rate" in row]
    if not rows:
        raise ValueError(f"{directory / PROGRESS} has no evaluation; move the run away, or train it anew")
    timed = all("eval/seconds" in row for row in rows)
    solved_at = _when(rows, THRESHOLD_SEEN if config.obs in SEEN else THRESHOLD)
    reached_at = _when(rows, REACHED)
    return Outcome(
        directory=str(directory),
        task=config.task,
        method=config.method,
        obs=config.obs,
        grids=config.grids,
        demonstrations=result.get("demonstrations", config.grids),
        **{name: result[name] for name in ("success_rate", "mean_steps", "environment_steps", "seconds")},
        others=result.get("others"),
        solved_steps=solved_at[0],
        solved_seconds=solved_at[1],
        reached_steps=reached_at[0],
        reached_seconds=reached_at[1],
        steps=tuple(row["step"] for row in rows),
        minutes=tuple(row["eval/seconds"] / 60 for row in rows) if timed else (),
        rates=tuple(row["eval/success_rate"] for row in rows),
    )


def _when(evaluations: Sequence[Row], threshold: float) -> tuple[int | None, float | None]:
    """Return steps and seconds until the threshold was reached (`solved`)."""
    row = solved(evaluations, threshold)
    return (int(row["step"]), row.get("eval/seconds")) if row else (None, None)


def solved(evaluations: Sequence[Row], threshold: float) -> Row | None:
    """Return the last of the first `IN_A_ROW` consecutive evaluations whose success rate reaches the threshold.

    Args:
        evaluations: Rows of `progress.csv` with an evaluation, ordered by step.
        threshold: Success rate.

    Returns:
        The row, or None if the task was not solved.
    """
    reached = 0
    for row in evaluations:
        reached = reached + 1 if row["eval/success_rate"] >= threshold else 0
        if reached == IN_A_ROW:
            return row
    return None
