"""One training per run directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from envs.files import check_replaceable

LOCK = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a run directory, made if missing; the lock ends with the process, however that ends.

    Raises:
        ValueError: Another process holds it. Or its lock file is not a regular one.
        OSError: The directory or its lock file cannot be made.
    """
    directory.mkdir(parents=True, exist_ok=True)
    check_replaceable(directory / LOCK)
    try:
        with FileLock(directory / LOCK, blocking=False):
            yield
    except Timeout:
        raise ValueError(f"another process is training in {directory}; wait until it ends, or stop it") from None
