"""Commands that trained the rows of a report."""

import re
from collections.abc import Sequence
from pathlib import Path

from agents import runs
from agents.report.outcome import Groups, Outcome


def commands(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the distinct commands of the seeds of a row, with SEED in place of the number."""
    found = [runs.read_result(Path(run.directory)).get("command", "") for run in outcomes]
    return list(dict.fromkeys(re.sub(r"--seed \d+", "--seed SEED", command) for command in found if command))


def commands_section(groups: Groups) -> str:
    """Return the commands of all rows in Markdown; empty if none is known."""
    known = {label: commands(outcomes) for label, outcomes in groups.items()}
    lines = [line for label, found in known.items() if found for line in (f"# {label}", *found)]
    return "\n".join(["\nCommands, for each SEED of a row:\n", "```bash", *lines, "```", ""]) if lines else ""
