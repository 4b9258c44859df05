"""Bad input ends a command with one clear line."""

import functools
import sys
from collections.abc import Callable
from typing import Any


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors that a user can mend into one line on standard error and exit status 2."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (ValueError, OSError, ImportError) as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            raise SystemExit(2) from error

    return wrapped
