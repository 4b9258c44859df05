"""Progress of several trainings: which run, and the time left."""

from collections.abc import Collection, Mapping
from pathlib import Path

from agents.config import TrainConfig
from agents.progress import Meter
from agents.runs.log import last_step


class Watch:
    """Show the environment steps of all trainings together, and those of each that runs.

    Args:
        trainings: Configurations of the unfinished runs by directory.
    """

    def __init__(self, trainings: Mapping[Path, TrainConfig]) -> None:
        self.steps = {directory: training.steps for directory, training in trainings.items()}
        self.done = {directory: last_step(directory) for directory in trainings}
        total = sum(self.steps.values())
        self.meter = Meter(f"{len(self.steps)} trainings", "step", total, sum(self.done.values()))

    def look(self, running: Collection[Path]) -> None:
        """Read the steps of the runs that run."""
        self.done |= {directory: min(last_step(directory), self.steps[directory]) for directory in running}
        shown = [f"{path.name} {self._share(path)}" for path in running]
        self.meter.reach(sum(self.done.values()), ", ".join(shown))

    def _share(self, directory: Path) -> str:
        share = self.done[directory] / self.steps[directory]
        return f"{share:.0%}" if share < 1 else "last evaluation"

    def ended(self, directory: Path) -> None:
        """Count a run that has ended, with or without success, as done."""
        self.done[directory] = self.steps[directory]

    def close(self) -> None:
        """Close the display."""
        self.meter.close()
