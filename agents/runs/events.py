"""TensorBoard's event files, written without a thread, and cut where a resumed run continues."""

import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.summary.writer.record_writer import RecordWriter

from envs.files import read_regular, write_bytes

PATTERN = "events.out.tfevents.*"
HEADER, FOOTER = struct.Struct("<QI"), struct.Struct("<I")  # length and its checksum; checksum of the data


class EventLog:
    """Append scalars to a new event file of a directory.

    Args:
        directory: Where it lies. Events after `resumed_at` in files that are there already are removed.
        resumed_at: Step after which this session continues; 0 at the start.
    """

    def __init__(self, directory: Path, resumed_at: int = 0) -> None:
        for path in sorted(directory.glob(PATTERN)):
            _cut(path, resumed_at)
        name = PATTERN.replace("*", f"{time.time():.6f}.{socket.gethostname()}.{os.getpid()}")
        self._file = (directory / name).open("xb")
        self._records = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"))
        if resumed_at:  # a TensorBoard that is watching forgets what it saw of later steps
            self._write(Event(step=resumed_at + 1, session_log=SessionLog(status=SessionLog.START)))

    def add(self, scalars: Mapping[str, float], step: int) -> None:
        """Append the scalars of one step."""
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._write(Event(step=step, summary=Summary(value=values)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        self._records.write(event.SerializeToString())
        self._records.flush()


def read_events(path: Path) -> Iterator[tuple[int, Event]]:
    """Read an event file up to its end or its first damaged record.

    Yields:
        Where each record ends in the file [bytes], and its event.
    """
    content, position = read_regular(path), 0
    while position + HEADER.size <= len(content):
        length, _ = HEADER.unpack_from(content, position)
        end = position + HEADER.size + length + FOOTER.size
        data = content[position + HEADER.size : end - FOOTER.size]
        if end > len(content) or FOOTER.unpack_from(content, end - FOOTER.size)[0] != masked_crc32c(data):
            return
        try:
            yield end, Event.FromString(data)
        except DecodeError:
            return
        position = end


def _cut(path: Path, last: int) -> None:
    """Keep the events up to step `last`."""
    end = 0
    for position, event in read_events(path):
        if event.step > last:
            break
        end = position
    content = path.read_bytes()
    if end < len(content):
        write_bytes(path, content[:end])
