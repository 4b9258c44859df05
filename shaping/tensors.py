"""Files of tensors and plain data that may come from anybody."""

import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from envs.files import read_regular, write_bytes


def read_tensors(path: Path, device: str | torch.device = "cpu") -> dict[str, Any]:
    """Read tensors and plain data; nothing in the file is executed.

    PyTorch itself checks no checksums, and unpacks what is small in the file and large in memory; both are refused.

    Raises:
        FileNotFoundError: No such file.
        ValueError: Not a regular file, damaged, or more than tensors and plain data.
    """
    data = read_regular(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())
            damaged = "compressed" if packed else archive.testzip()
        content = None if damaged else torch.load(io.BytesIO(data), map_location=device, weights_only=True)
    except Exception as error:  # an arbitrary file can make the readers raise almost anything
        raise ValueError(f"{path}: damaged, or more than weights ({type(error).__name__})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: damaged, or not made by this program ({damaged or type(content).__name__})")
    return content


@contextmanager
def building_at_most(size: int) -> Iterator[None]:
    """Limit the parameters of the modules that this thread builds, before their memory is touched.

    Args:
        size: Of all of them together [bytes].

    Raises:
        ValueError: They are larger.
    """
    thread, seen, total = threading.get_ident(), {}, 0

    def count(_module: nn.Module, _name: str, tensor: Tensor | None) -> None:
        nonlocal total
        if tensor is None or id(tensor) in seen or threading.get_ident() != thread:
            return
        seen[id(tensor)] = tensor  # held, so that no other one gets its id
        total += tensor.nbytes
        if total > size:
            raise ValueError(f"it makes networks larger than the file's, of {size} bytes")

    hooks = (register_module_parameter_registration_hook(count), register_module_buffer_registration_hook(count))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


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
