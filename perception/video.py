"""Atomic writing of videos as MP4 or GIF files."""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import numpy as np
from jaxtyping import UInt8

from envs.files import check_replaceable

FPS = 20  # real time
QUALITY = 4.5  # of imageio, 0 to 10; half the bytes of its default, 5, so that a report can hold many videos
SUFFIXES = (".mp4", ".gif")


@contextlib.contextmanager
def open_video(path: Path) -> Iterator[Callable[[UInt8[np.ndarray, "rows columns 3"]], None]]:
    """Yield a function that appends a frame; the complete file is moved to `path` when the context exits.

    ``.mp4`` is encoded as H.264, which common players support; ``.gif`` needs no encoder. A symbolic link is replaced,
    not followed.

    Raises:
        ValueError: `path` is not a regular file; the message names its kind.
        OSError: The file cannot be written, raised before the first frame if possible; the message names the file.
    """
    check_replaceable(path)
    partial = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        with _naming(path):
            partial.touch()
        with _open_gif(partial, path) if path.suffix == ".gif" else _open_mp4(partial, path) as append:
            yield append
        with _naming(path):
            partial.replace(path)
    finally:
        with contextlib.suppress(OSError):  # the error of writing is more informative
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _open_gif(partial: Path, path: Path) -> Iterator[Callable[[Any], None]]:
    content = io.BytesIO()  # written to memory first: imageio reports an error on closing a file three times
    writer: Any
    with imageio.get_writer(content, format=".gif", duration=1000 / FPS, loop=0) as writer:
        yield writer.append_data
    with _naming(path):
        partial.write_bytes(content.getvalue())


@contextlib.contextmanager
def _open_mp4(partial: Path, path: Path) -> Iterator[Callable[[Any], None]]:
    writer: Any
    count = 0

    def append(frame: UInt8[np.ndarray, "rows columns 3"]) -> None:
        nonlocal count
        try:
            writer.append_data(frame)
        except OSError as error:
            raise failed from error
        count += 1

    failed = OSError(f"{path}: the encoder could not write the video; is the disk full?")
    with imageio.get_writer(partial, fps=FPS, quality=QUALITY, ffmpeg_log_level="quiet") as writer:
        yield append
    if _count_frames(partial) != count:  # imageio does not check the exit status of the encoder
        raise failed


def _count_frames(path: Path) -> int:
    import imageio_ffmpeg  # imported late: GIF files do not need it

    try:
        return imageio_ffmpeg.count_frames_and_secs(path)[0]
    except RuntimeError:  # the file has no frames
        return 0


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
