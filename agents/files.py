"""Files that are whole or not there, whenever the process or the machine stops."""

import io
import os
import shutil
from pathlib import Path
from typing import Any

import torch

from envs.files import sync, write_bytes, write_text
from shaping.tensors import read_tensors

__all__ = [
    "discard",
    "read_tensors",
    "remove_partial",
    "sync",
    "tensor_bytes",
    "write_bytes",
    "write_tensors",
    "write_text",
]


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
