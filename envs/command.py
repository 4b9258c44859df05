"""Bad input ends a command with one clear line."""

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Any


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command end as shells expect.

    Errors that a user can mend are one line on standard error and exit status 2, Ctrl-C is status 130, and a reader
    that has seen enough, as `head` has, status 141 without a word. Characters that a terminal does not know are
    replaced, and what is written to a closed standard stream is dropped.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _prepare_streams()
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except SystemExit as end:  # --help leaves this way
            if _silenced_output():
                raise SystemExit(141) from None
            raise end
        except BrokenPipeError:
            _silenced_output()
            raise SystemExit(141) from None
        except (ValueError, OSError, ImportError, MemoryError, FloatingPointError) as error:
            _silenced_output()
            reason = str(error) or "not enough memory" if isinstance(error, MemoryError) else str(error)
            _say(f"error: {' '.join(reason.split())}")
            raise SystemExit(2) from error
        except KeyboardInterrupt:
            _say("interrupted")
            raise SystemExit(130) from None
        return result

    return wrapped


def _prepare_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # in this order each gets its own number, which no other file gets then
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115  (for the rest of the process)
            os.set_inheritable(getattr(sys, name).fileno(), True)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # the exit status says it too
        print(line, file=sys.stderr)


def _silenced_output() -> bool:
    """If standard output takes nothing more (full disk, closed pipe), spare the reader what Python says at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False
