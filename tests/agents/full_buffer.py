"""Train a little and fill the replay buffer by repeating its rows: ``python -m tests.agents.full_buffer --out DIR …``.

Takes the arguments of ``agents.train``, with updates before step 60, and prints what its processes have resident then.
"""

import re
import sys
from pathlib import Path
from typing import Any

import psutil

from agents.benchmark.training import repeat_rows
from agents.runs.callbacks import Progress
from agents.train import main

ROWS, STEPS = 50, 60  # the rows divide a million


def resident() -> int:
    """Bytes that this process and those beside it have resident; a page that they share counts once.

    Files are mapped by all of them, and other programs may map them too, so that Pss does for anonymous pages alone.
    """
    own = psutil.Process()
    rollups = []
    for process in (own, *own.children()):
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        rollups.append({name: 1024 * int(size) for name, size in re.findall(r"(\w+):\s+(\d+) kB", text)})
    return rollups[0]["Rss"] - rollups[0]["Anonymous"] + sum(rollup["Pss_Anon"] for rollup in rollups)


def fill(progress: Any) -> bool:
    """Take the place of showing the progress; a step is stored after it."""
    if progress.num_timesteps == ROWS + 1:
        repeat_rows(progress.model.replay_buffer)
    if progress.num_timesteps == STEPS:
        rows, processes = progress.model.replay_buffer.size(), 1 + len(psutil.Process().children())
        print(f"resident: {resident()} bytes, {rows} rows, {processes} processes", flush=True)
        sys.exit(0 if progress.model._n_updates else 1)
    return True


if __name__ == "__main__":
    Progress._on_step = fill  # type: ignore[method-assign]
    main(sys.argv[1:])
