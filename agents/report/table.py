"""Results table in Markdown."""

from pathlib import Path
from typing import Any

import numpy as np

from agents.runs.log import PROGRESS, read_progress

Group = tuple[str, str]  # observation, method


def results_table(results: dict[Group, list[dict[str, Any]]]) -> str:
    """Format mean ± standard deviation and quartiles of the success rate [%] and the steps as the paper's table."""
    lines = [
        "| observation | method | seeds | success, mean ± std [%] | Q1 / median / Q3 | steps | training | hours |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (obs, method), rows in results.items():
        rate = 100 * np.array([r["success_rate"] for r in rows])
        steps = [r["mean_steps"] for r in rows if r["mean_steps"] is not None]
        taken = [r["environment_steps"] for r in rows]
        q1, median, q3 = np.percentile(rate, [25, 50, 75])
        cells = [
            obs,
            method,
            len(rows),
            f"{rate.mean():.1f} ± {rate.std():.1f}",
            f"{q1:.0f} / {median:.0f} / {q3:.0f}",
            f"{np.mean(steps):.1f}" if steps else "-",
            "–".join(map(str, sorted({min(taken), max(taken)}))),
            f"{sum(r['seconds'] for r in rows) / 3600:.2f}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def read_curve(directory: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the learning curve of a run.

    Returns:
        Environment steps (n,) and success rates (n,).
    """
    rows = [row for row in read_progress(directory / PROGRESS) if "eval/success_rate" in row]
    return np.array([row["step"] for row in rows]), np.array([row["eval/success_rate"] for row in rows])
