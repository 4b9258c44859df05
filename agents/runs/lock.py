"""One training per run directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envs.files import check_regular

LOCK = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a run directory, made if missing; the lock ends with the process, however that ends.

    Raises:
        ValueError: Another process holds it; names that process. Or its lock file is not a regular one.
        OSError: The directory or its lock file cannot be made.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / LOCK).exists():
        check_regular(directory / LOCK)
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read(20).strip()
            raise ValueError(f"process {holder} is training in {directory}; wait until it ends, or stop it") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
