"""Bad input ends a command with one clear line."""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors that a user can mend into one line on standard error and exit status 2, Ctrl-C into status 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except (ValueError, OSError, ImportError, MemoryError) as error:
            _silence_output()
            reason = str(error) or "not enough memory" if isinstance(error, MemoryError) else str(error)
            print(f"error: {' '.join(reason.split())}", file=sys.stderr)
            raise SystemExit(2) from error
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise SystemExit(130) from None
        return result

    return wrapped


def _silence_output() -> None:
    """If standard output takes nothing more (full disk, closed pipe), spare the reader what Python says at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
