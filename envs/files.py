"""Regular files, and nothing else under a file's name: a named pipe would wait for a writer, a device may never end.

What is written is whole or not there, whenever the process or the machine stops.
"""

import contextlib
import os
import shutil
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


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Check, before there is anything to write, that it takes the place of a regular file or of nothing.

    Raises:
        ValueError: Something else is there; names it.
        OSError: It cannot be looked at.
    """
    with contextlib.suppress(FileNotFoundError):
        check_regular(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Put `content` in the place of `path` once it is on the disk; until then `path` stays as it was.

    A symbolic link is replaced, not followed.

    Raises:
        OSError: The file cannot be written; names it.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with contextlib.suppress(OSError):  # the error that stopped the writing says more
            partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8 whatever the locale, whole or not at all; what UTF-8 cannot hold of file names is replaced.

    Raises:
        OSError: The file cannot be written; names it.
    """
    write_bytes(path, text.encode(errors="replace"))


def sync(path: Path) -> None:
    """Wait until a file's content, or a directory's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(directory: Path) -> None:
    """Remove a directory so that no part of it is ever seen under its name."""
    hidden = directory.with_name(f".{directory.name}.{os.getpid()}.partial")
    shutil.rmtree(hidden, ignore_errors=True)
    directory.replace(hidden)
    shutil.rmtree(hidden)


def remove_partial(directory: Path) -> None:
    """Remove what writers that were killed left below `directory`; nobody else may be writing there."""
    for path in directory.glob(".*.partial"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
