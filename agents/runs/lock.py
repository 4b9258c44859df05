"""Lock that allows one training per run directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from envs.files import check_replaceable

LOCK = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a run directory, which is created if missing; the lock is released when the process ends for any reason.

    Raises:
        ValueError: Another process holds the lock, or the lock file is not a regular file.
        OSError: The directory or the lock file cannot be created.
    """
    directory.mkdir(parents=True, exist_ok=True)
    check_replaceable(directory / LOCK)
    try:
        with FileLock(directory / LOCK, blocking=False):
            yield
    except Timeout:
        raise ValueError(f"another process is training in {directory}; wait until it ends, or stop it") from None
