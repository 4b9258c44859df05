"""Read and atomically write regular files.

Other kinds of files are refused: opening a named pipe blocks until there is a writer, and a device may never end.
Writing is atomic: if the process or the machine stops, the file is either complete or unchanged.
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
    """Check that `path` is a regular file, without opening it.

    Raises:
        FileNotFoundError: The path does not exist or is a broken link.
        ValueError: It is not a regular file; the message names its kind.
        OSError: Its status cannot be read.
    """
    try:
        kind = stat.S_IFMT(Path(path).stat().st_mode)
    except ValueError as error:  # an invalid name
        raise FileNotFoundError(f"{os.fspath(path)!r}: no such file") from error
    if kind != stat.S_IFREG:
        raise ValueError(f"{os.fspath(path)}: {KINDS.get(kind, 'something else')}, not a regular file")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        FileNotFoundError: The path does not exist or is a broken link.
        ValueError: It is not a regular file; the message names its kind.
        OSError: It cannot be read.
    """
    check_regular(path)
    return Path(path).open("rb")


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file; raises the same errors as `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Check, before any work is done, that `path` does not exist or is a regular file that can be replaced.

    Raises:
        ValueError: It is not a regular file; the message names its kind.
        OSError: Its status cannot be read.
    """
    with contextlib.suppress(FileNotFoundError):
        check_regular(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically: `path` is unchanged until the content is on the disk.

    A symbolic link is replaced, not followed.

    Raises:
        OSError: The file cannot be written; the message names it.
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
        with contextlib.suppress(OSError):  # the error of writing is more informative
            partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text atomically as UTF-8, independent of the locale.

    Characters of file names that UTF-8 cannot encode are replaced.

    Raises:
        OSError: The file cannot be written; the message names it.
    """
    write_bytes(path, text.encode(errors="replace"))


def sync(path: Path) -> None:
    """Wait until the content of a file, or the entries of a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(directory: Path) -> None:
    """Remove a directory; it is renamed first, so that it is never seen half removed under its name."""
    hidden = directory.with_name(f".{directory.name}.{os.getpid()}.partial")
    shutil.rmtree(hidden, ignore_errors=True)
    directory.replace(hidden)
    shutil.rmtree(hidden)


def remove_partial(directory: Path) -> None:
    """Remove the partial files that killed processes left in `directory`; no other process may be writing there."""
    for path in directory.glob(".*.partial"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
