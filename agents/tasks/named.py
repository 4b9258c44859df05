"""Tasks and encoders of the user, named on the command line as module:Name and imported from there.

A name in a file, such as `config.json` of a run, is never imported: only what the command line names.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from torch import nn

from agents.tasks import Task, available_tasks, register_task
from perception.registry import available_encoders, register_encoder


def register_named(names: Iterable[str | None], flag: str) -> None:
    """Import what is named module:Name and register it under this name; other names are left alone.

    Args:
        names: Names of tasks (`agents.tasks.Task`) and encoder classes.
        flag: Flag that gave them, for messages.

    Raises:
        ValueError: The module cannot be imported, lacks the name, or has neither a task nor an encoder there.
    """
    for name in names:
        if name is None or ":" not in name or name in (*available_tasks(), *available_encoders()):
            continue
        found = _imported(name, flag)
        if isinstance(found, Task):
            register_task(name, found)
        elif isinstance(found, type) and issubclass(found, nn.Module):
            register_encoder(name)(found)
        else:
            raise ValueError(f"{flag} {name}: is {found!r:.80}, neither an agents.tasks.Task nor an encoder class")


def named_words(config: Any) -> str:
    """Return the words of a command line that name the task and the encoder of a configuration, to import them."""
    named = {"--task": config.task, "--encoder": config.encoder}
    return "".join(f" {flag} {name}" for flag, name in named.items() if name and ":" in name)


def _imported(name: str, flag: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found = import_module(module)
    except Exception as error:  # whatever the module raises when it is imported
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{flag} {name}: cannot be imported ({reason}); the module must be installed or lie in this directory"
        ) from error
    try:
        return getattr(found, attribute)
    except AttributeError as error:
        raise ValueError(f"{flag} {name}: {error}") from error
