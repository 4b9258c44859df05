"""Atomic writing of figures as PNG files."""

import io
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from envs.files import write_bytes


def write_picture(figure: Figure, path: Path, **settings: Any) -> None:
    """Write a figure as PNG, atomically.

    Args:
        figure: Figure to write.
        path: File; a symbolic link is replaced, not followed.
        **settings: Arguments of `Figure.savefig`.

    Raises:
        OSError: The file cannot be written; the message names it.
    """
    stream = io.BytesIO()
    figure.savefig(stream, format="png", **settings)
    write_bytes(path, stream.getvalue())
