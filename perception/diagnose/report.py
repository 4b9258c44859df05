"""Table of the findings in Markdown."""

from collections.abc import Callable, Sequence

import numpy as np

from perception.diagnose.findings import ALIASED, Findings


def _mm(*metres: float) -> str:
    return " / ".join("-" if np.isnan(value) else f"{1000 * value:.1f}" for value in metres)


def _r2(found: Findings, *columns: int) -> str:
    return " / ".join("-" if np.isnan(found.recovered[i]) else f"{found.recovered[i]:.2f}" for i in columns)


def _pair(found: Findings) -> str:
    frames = " and ".join(f"{episode}:{step}" for episode, step in found.worst_frames)
    return f"{_mm(*found.worst)} (episode:step {frames})"


ROWS: dict[str, Callable[[Findings], str]] = {
    "share of the puck seen, mean": lambda found: f"{found.seen:.1%}",
    "pixels on the puck, median": lambda found: f"{found.pixels:.0f}",
    "frames without the puck, without / with noise": lambda found: f"{found.hidden:.1%} / {found.lost:.1%}",
    "longest run of them, without noise [frames]": lambda found: f"{found.longest}",
    "error of the centroid, median / 95 % [mm]": lambda found: _mm(*found.error),
    "bias of the centroid, x / y [mm]": lambda found: _mm(*found.bias),
    "largest gap on the surface, median / 95 % [mm]": lambda found: _mm(*found.gap),
    f"frames whose nearest cloud is of a state over {1000 * ALIASED:.0f} mm further away": lambda found: (
        f"{found.aliased:.1%}"
    ),
    "worst pair, states / clouds apart [mm]": _pair,
    "noise of the centroid, per episode / per frame [mm]": lambda found: _mm(found.offset, found.jitter),
    "R² of the positions s_PE x / y, s_PG x / y": lambda found: f"{_r2(found, 0, 1)}, {_r2(found, 4, 5)}",
    "R² of the velocities v_PE x / y, v_PG x / y": lambda found: f"{_r2(found, 2, 3)}, {_r2(found, 6, 7)}",
}


def findings_table(findings: Sequence[Findings]) -> str:
    """Format what was found in Markdown with aligned columns, a row for each number and a column for each view."""
    rows = [["", *(found.name for found in findings)]]
    rows += [[name, *(cell(found) for found in findings)] for name, cell in ROWS.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows
    )
