"""Registry of tasks by name."""

from typing import Any

import gymnasium as gym

from agents.tasks.contract import VERSION, Task

_TASKS: dict[str, Task] = {}


def register_task(name: str, task: Task) -> Task:
    """Register a task under a name.

    Raises:
        ValueError: The name is taken, or the task was written for another version of the contract.
    """
    if task.version != VERSION:
        raise ValueError(f"task {name!r} is of version {task.version} of agents.tasks.Task; this one is {VERSION}")
    if name in _TASKS:
        raise ValueError(f"a task {name!r} is registered already; choose another name")
    _TASKS[name] = task
    return task


def get_task(name: str) -> Task:
    """Return the task registered under `name`.

    Raises:
        ValueError: There is no such task; the message lists the registered ones.
    """
    if name not in _TASKS:
        own = "; name it on the command line, --task or --imports module:Name, to import it" if ":" in name else ""
        raise ValueError(f"--task: unknown task {name!r}; registered tasks: {', '.join(available_tasks())}{own}")
    return _TASKS[name]


def available_tasks() -> list[str]:
    """Return the names of the registered tasks."""
    return list(_TASKS)


def first_observation(name: str | None) -> str:
    """Return the first observation of a task, which commands take by default; that of the push if it is not known."""
    task = _TASKS[name] if name in _TASKS else next(iter(_TASKS.values()))
    return next(iter(task.views))


def make_env(config: Any, render_mode: str | None = None, **settings: Any) -> gym.Env:
    """Make the environment of a training configuration; `settings` are further arguments of its task's `make`."""
    return get_task(config.task).make(obs=config.obs, grids=config.grids, render_mode=render_mode, **settings)
