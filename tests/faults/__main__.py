"""Do faults and print what followed: ``python -m tests.faults --kills 20``."""

import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from tests.faults import faults
from tests.faults.commands import run_train


def run(
    kills: int = 20,
    damages: int = 60,
    disks: int = 8,
    seed: Annotated[int | None, tyro.conf.arg(help="Of the choice of faults; drawn if not given.")] = None,
) -> None:
    """Kill trainings, damage their files and fill their disks, and check that nothing is lost.

    Args:
        kills: Trainings to kill.
        damages: Files to damage.
        disks: Disks to fill.
        seed: Of the choice of faults.
    """
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    print(f"seed {seed}", flush=True)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcome = run_train(folder / "whole")
        assert outcome.works, outcome
        for number, do in (
            (kills, lambda: faults.kills(folder, folder / "whole", faults.random_kills(kills, rng))),
            (damages, lambda: faults.damages(folder, folder / "whole", damages, rng)),
            (disks, lambda: faults.full_disks(folder, folder / "whole", disks, rng)),
        ):
            if number:
                print("\n".join(f"{count:5d} {what}" for what, count in do().items()), flush=True)


def main() -> None:
    """Entry point of ``python -m tests.faults``."""
    tyro.cli(run, prog="python -m tests.faults")


if __name__ == "__main__":
    main()
