"""Trainings as a job array of Slurm; a job that is preempted or runs out of time is resumed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.config import TrainConfig
from agents.launch.training import run_training


class Job:
    """A training as a job. submitit calls `checkpoint` before the job ends early, and submits what it returns."""

    def __call__(self, training: TrainConfig, directory: Path, place: Path) -> None:
        """Start the training, or resume it from its last checkpoint."""
        run_training(training, directory, place)

    def checkpoint(self, training: TrainConfig, directory: Path, place: Path) -> Any:
        """Return the job that resumes the training."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, training, directory, place)


def submit(trainings: Mapping[Path, TrainConfig], folder: Path, parameters: Sequence[str]) -> list[str]:
    """Submit a job array with one job per run, and return the names of the jobs.

    Args:
        trainings: Configurations of the unfinished runs by directory.
        folder: Directory of the script, of the pickled jobs and of their output.
        parameters: Parameters of submitit's executor, each as name=value: timeout_min=240, slurm_partition=cpu.

    Raises:
        ImportError: submitit is not installed.
        ValueError: A parameter is malformed or unknown, there is no Slurm on this machine, or it refuses the jobs.
    """
    try:
        import submitit  # an extra
    except ImportError:
        raise ImportError("--launcher slurm needs submitit: pip install 'pushcloud[cluster]'") from None
    given: dict[str, Any] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not equals or not name:
            raise ValueError(f"--slurm {parameter}: give name=value, such as timeout_min=240 or slurm_partition=cpu")
        given[name] = int(value) if value.isdecimal() else value
    threads = max(training.threads for training in trainings.values())
    try:
        executor = submitit.AutoExecutor(folder.resolve(), cluster="slurm")
        executor.update_parameters(**{"name": "pushcloud", "cpus_per_task": threads, "timeout_min": 24 * 60} | given)
    except (RuntimeError, NameError, AssertionError, TypeError) as error:
        raise ValueError(f"--launcher slurm: {error}") from error
    place = Path.cwd()
    try:
        jobs = executor.map_array(Job(), list(trainings.values()), list(trainings), [place] * len(trainings))
    except submitit.core.utils.FailedJobError as error:
        raise ValueError(f"--launcher slurm: {error}") from error
    return [job.job_id for job in jobs]
