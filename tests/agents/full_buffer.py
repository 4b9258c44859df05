"""Train a little and fill the replay buffer by repeating its rows: ``python -m tests.agents.full_buffer --out DIR …``.

Takes the arguments of ``agents.train``, with updates before step 60, and prints what the process has resident then.
"""

import sys
from typing import Any

import psutil

from agents.benchmark.training import repeat_rows
from agents.callbacks import Progress
from agents.train import main

ROWS, STEPS = 50, 60  # the rows divide a million


def fill(progress: Any) -> bool:
    """Take the place of showing the progress; a step is stored after it."""
    if progress.num_timesteps == ROWS + 1:
        repeat_rows(progress.model.replay_buffer)
    if progress.num_timesteps == STEPS:
        print(f"resident: {psutil.Process().memory_info().rss} bytes", flush=True)
        sys.exit(0 if progress.model.replay_buffer.full and progress.model._n_updates else 1)
    return True


if __name__ == "__main__":
    Progress._on_step = fill  # type: ignore[method-assign]
    main(sys.argv[1:])
