"""Files that are whole or not there, whenever the process or the machine stops."""

import io
import os
import shutil
from pathlib import Path
from typing import Any

import torch

from shaping.tensors import read_tensors

__all__ = ["discard", "read_tensors", "remove_partial", "sync", "tensor_bytes", "write_bytes", "write_tensors"]


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
        _remove_if_possible(partial)


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8 whatever the locale, whole or not at all; what UTF-8 cannot hold of file names is replaced.

    Raises:
        OSError: The file cannot be written; names it.
    """
    write_bytes(path, text.encode(errors="replace"))


def write_tensors(path: Path, content: dict[str, Any]) -> None:
    """Write tensors and plain data, whole or not at all.

    Raises:
        OSError: The file cannot be written; names it.
    """
    write_bytes(path, tensor_bytes(content))


def tensor_bytes(content: dict[str, Any]) -> bytes:
    """Return PyTorch's file of tensors and plain data."""
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


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


def _remove_if_possible(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # the error that stopped the writing says more
        return
