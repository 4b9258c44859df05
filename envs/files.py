"""Regular files, and nothing else under a file's name: a named pipe would wait for a writer, a device may never end."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFDIR: "a directory",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(path: str | os.PathLike[str]) -> None:
    """Check that there is a regular file, without opening it.

    Raises:
        FileNotFoundError: There is nothing, or a link that leads to nothing.
        ValueError: It is of another kind; names it.
        OSError: It cannot be looked at.
    """
    try:
        kind = stat.S_IFMT(Path(path).stat().st_mode)
    except ValueError as error:  # a name that cannot be
        raise FileNotFoundError(f"{os.fspath(path)!r}: no such file") from error
    if kind != stat.S_IFREG:
        raise ValueError(f"{os.fspath(path)}: {KINDS.get(kind, 'something else')}, not a regular file")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        FileNotFoundError: There is nothing, or a link that leads to nothing.
        ValueError: It is of another kind; names it.
        OSError: It cannot be read.
    """
    check_regular(path)
    return Path(path).open("rb")


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file; raises what `open_regular` does."""
    with open_regular(path) as file:
        return file.read()
