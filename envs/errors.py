"""Bad input ends a command with one clear line."""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command end as shells expect.

    Errors that a user can mend are one line on standard error and exit status 2, Ctrl-C is status 130, and a reader
    that has seen enough, as `head` has, status 141 without a word.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
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
            print(f"error: {' '.join(reason.split())}", file=sys.stderr)
            raise SystemExit(2) from error
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise SystemExit(130) from None
        return result

    return wrapped


def _silenced_output() -> bool:
    """If standard output takes nothing more (full disk, closed pipe), spare the reader what Python says at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False
