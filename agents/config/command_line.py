"""Helpers for command lines whose defaults depend on a flag: on a preset, or on the resumed run."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from agents.config.file import flat, unused


def value_of(arguments: list[str], flag: str) -> str | None:
    """Return the value of the last occurrence of `flag`, or None."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return next((value for word, value in reversed(list(pairwise(words))) if word == flag), None)


def refuse_changes(given: Any, stored: Any, directory: Path) -> None:
    """Check that a resumed run keeps its configuration, except for the number of steps.

    Args:
        given: Requested configuration.
        stored: Configuration stored in the directory.
        directory: Directory to resume.

    Raises:
        ValueError: Another setting differs; the message names the flags.
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


def refuse_unused(given: Any, default: Any) -> None:
    """Check that no setting is changed which the method does not use.

    Args:
        given: Configuration of the command line.
        default: Configuration that the command line changes.

    Raises:
        ValueError: There is such a setting; the message names its flag.
    """
    now, before = flat(given), flat(default)
    for name in unused(given):
        if now[name] != before[name]:
            raise ValueError(f"--{name.replace('_', '-')} has no effect with --method {given.method}; leave it out")
