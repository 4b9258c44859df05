"""How a command ends, whatever its standard streams can take."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest

from envs.command import one_line_errors

ROOT = Path(__file__).parents[2]
EVALUATE = "-m agents.evaluate assets/policies/push-slot-1-state --episodes 1"


@one_line_errors
def say(line, error=None):
    print(line)
    if error is not None:
        raise error


def test_characters_that_a_terminal_does_not_know_are_replaced(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    say("Φ 98.0 ± 1.6")
    assert stream.buffer.getvalue() == b"? 98.0 ? 1.6\n"


def test_a_name_that_is_no_utf_8_is_printed(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    say("wrote caf\udce9.pt")
    assert stream.buffer.getvalue() == b"wrote caf?.pt\n"


@pytest.mark.parametrize("error", [None, ValueError("--steps is 0"), KeyboardInterrupt()])
def test_closed_streams_change_nothing_else(error, monkeypatch):
    names = ("stdin", "stdout", "stderr")
    for name in names:
        monkeypatch.setattr(sys, name, None)
    with contextlib.nullcontext() if error is None else pytest.raises(SystemExit) as stop:
        say("lost", error)
    for name in names:
        getattr(sys, name).close()
    assert error is None or stop.value.code == (2 if isinstance(error, ValueError) else 130)


@pytest.mark.parametrize(
    "streams, status, said",
    [
        (">&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        (">/dev/full", 2, "error: [Errno 28] No space left on device\n"),
        ("2>/dev/full --episodes 0", 2, ""),
        ("2>&- --episodes 0", 2, ""),
    ],
)
def test_a_command_ends_with_its_status(streams, status, said):
    """As a shell closes and fills its streams."""
    command = f"{sys.executable} {EVALUATE} {streams}"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", said)
