"""Tasks: their contract, a registry by name, and a task from any Gymnasium environment.

A registered task is available in every command::

    register_task("my-push", dataclasses.replace(get_task("push-slot"), make=make_my_push))
"""

import agents.tasks.push  # noqa: F401 (registers the task of this project)
from agents.tasks.contract import Task, View
from agents.tasks.gymnasium_task import gymnasium_task
from agents.tasks.registry import available_tasks, first_observation, get_task, make_env, register_task

__all__ = [
    "Task",
    "View",
    "available_tasks",
    "first_observation",
    "get_task",
    "gymnasium_task",
    "make_env",
    "register_task",
]
