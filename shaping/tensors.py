"""Read and write files of tensors and plain data; files from untrusted sources can be read safely."""

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
    """Read tensors and plain data without executing anything in the file.

    PyTorch does not verify checksums and accepts compressed entries, which may be small in the file and large in
    memory. Here, damaged files and compressed entries are refused.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not regular, is damaged, or holds more than tensors and plain data.
    """
    data = read_regular(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())
            damaged = "compressed" if packed else archive.testzip()
        content = None if damaged else torch.load(io.BytesIO(data), map_location=device, weights_only=True)
    except Exception as error:  # a damaged file can cause almost any error
        raise ValueError(f"{path}: damaged, or more than weights ({type(error).__name__})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: damaged, or not made by this program ({damaged or type(content).__name__})")
    return content


@contextmanager
def building_at_most(size: int) -> Iterator[None]:
    """Limit the total size of the parameters and buffers of modules that this thread builds in the context.

    The limit is checked before the memory of a tensor is written.

    Args:
        size: Largest total size [bytes].

    Raises:
        ValueError: The total size exceeds the limit.
    """
    thread, seen, total = threading.get_ident(), {}, 0

    def count(_module: nn.Module, _name: str, tensor: Tensor | None) -> None:
        nonlocal total
        if tensor is None or id(tensor) in seen or threading.get_ident() != thread:
            return
        seen[id(tensor)] = tensor  # keeps the tensor alive, so that its id is not reused
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
    """Write tensors and plain data atomically.

    Raises:
        OSError: The file cannot be written; the message names it.
    """
    write_bytes(path, tensor_bytes(content))


def tensor_bytes(content: dict[str, Any]) -> bytes:
    """Return tensors and plain data in PyTorch's file format."""
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()
