"""The pushing tasks: a Franka Panda pushes a puck, in an obstacle-free plane or into a slot."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envs.push.tasks.tasks import PushPlane, PushSlot

__all__ = ["PushPlane", "PushSlot"]


def __getattr__(name: str) -> Any:
    """Import the tasks on first use, since they import robosuite."""
    if name in __all__:
        from envs.push.tasks import tasks

        return getattr(tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
