"""Decorator of command-line programs: errors of the user are reported in one line."""

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Any


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command print errors in one line and exit with the status that shells expect.

    Errors that the user can correct are printed in one line on standard error with exit status 2. Ctrl-C exits with
    status 130, and a pipe closed by its reader (such as `head`) with status 141 and no message. Characters that the
    terminal cannot encode are replaced, and output to a closed standard stream is discarded.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _prepare_streams()
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except SystemExit as end:  # raised by --help
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
        if (
            getattr(sys, name) is None
        ):  # in this order each gets its own descriptor (0, 1, 2), which no other file takes
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115  (for the rest of the process)
            os.set_inheritable(getattr(sys, name).fileno(), True)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # the exit status reports the error too
        print(line, file=sys.stderr)


def _silenced_output() -> bool:
    """Redirect standard output to the null device if it cannot be written (full disk, closed pipe).

    Python would otherwise print a second error at exit. Returns whether the output was redirected.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False
