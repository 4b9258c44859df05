"""Command lines whose defaults depend on a flag: on a preset, or on the run that is resumed."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from agents.config.file import flat


def value_of(arguments: list[str], flag: str) -> str | None:
    """What follows `flag` the last time, None without it."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    return next((value for word, value in reversed(list(pairwise(words))) if word == flag), None)


def refuse_changes(given: Any, stored: Any, directory: Path) -> None:
    """Check that what is resumed keeps its configuration, the steps excepted.

    Args:
        given: Configuration asked for.
        stored: The one stored in the directory.
        directory: What is resumed.

    Raises:
        ValueError: Another setting differs; names the flags.
    """
    now, then = flat(given), flat(stored)
    changed = [
        f"--{name.replace('_', '-')} is {then[name]} there, not {now[name]}"
        for name in now
        if name not in ("steps", "resume") and now[name] != then[name]
    ]
    if changed:
        raise ValueError(
            f"{directory} is resumed with the configuration stored there, of which only --steps may be changed: "
            + "; ".join(changed)
        )
