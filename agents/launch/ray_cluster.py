"""Trainings as tasks of a Ray cluster; a run whose node is lost is resumed on another node."""

import os
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from agents.config import TrainConfig
from agents.launch.training import failure, run_training
from agents.launch.watch import Watch

LOST_NODES = 100  # number of times that one run may lose its node
SECONDS_BETWEEN_LOOKS = 1.0


def run_on_ray(trainings: Mapping[Path, TrainConfig], address: str | None) -> None:
    """Start or resume every run on a Ray cluster; the others continue if one fails.

    A task takes as many CPUs as its training has threads. The nodes share the file system of the run directories.

    Args:
        trainings: Configurations of the unfinished runs by directory.
        address: Address of the cluster's head; None takes the one in RAY_ADDRESS or on this machine, else starts one.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: No cluster answers at the address.
        ValueError: Runs failed; raised after all runs have ended, and the message names their directories.
    """
    try:
        import ray  # an extra
    except ImportError:
        raise ImportError("--launcher ray needs Ray: pip install 'pushcloud[cluster]'") from None
    _check_answers(address or os.environ.get("RAY_ADDRESS", ""))
    ray.init(address, log_to_driver=False, configure_logging=False)
    place = Path.cwd()
    failed: list[Path] = []
    largest = max((node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]), default=0.0)
    threads = max(training.threads for training in trainings.values())
    if 0 < largest < threads:
        ray.shutdown()
        raise ValueError(f"--threads {threads} is more than a node of the Ray cluster has, {largest:g} CPUs")
    # A worker process per training, so that nothing of one is left for the next.
    task = ray.remote(max_calls=1, max_retries=LOST_NODES)(run_training)
    try:
        with closing(Watch(trainings)) as watch:
            pending = {
                task.options(num_cpus=training.threads).remote(training, directory, place): directory
                for directory, training in trainings.items()
            }
            while pending:
                ready, _ = ray.wait(list(pending), timeout=SECONDS_BETWEEN_LOOKS)
                watch.look([directory for directory in pending.values() if directory.exists()])
                for reference in ready:
                    directory = pending.pop(reference)
                    try:
                        ray.get(reference)
                    except ray.exceptions.RayError as error:
                        failed.append(directory)
                        print(f"failed: {directory} ({_reason(error)})", file=sys.stderr)
                    watch.ended(directory)
    finally:
        ray.shutdown()
    if failed:
        raise failure(failed)


def _check_answers(address: str) -> None:
    """Check that HOST:PORT is open; Ray itself would retry for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "//" not in host:
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise ConnectionError(f"--address {address}: no Ray cluster answers there ({error})") from error


def _reason(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[-1]
