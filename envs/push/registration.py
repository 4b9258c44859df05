"""Registration of the tasks with robosuite, without importing robosuite."""

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ROBOSUITE_REGISTRY = "robosuite.environments.base"
ROBOSUITE_TASKS = ("PushPlane", "PushSlot")


def _make(name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(import_module("envs.push.tasks"), name)(*args, **kwargs)


def _add_tasks(registry: ModuleType) -> None:
    for name in ROBOSUITE_TASKS:  # replaced by the class when `envs.push.tasks` is imported
        registry.REGISTERED_ENVS.setdefault(name, partial(_make, name))


class _AfterImport(MetaPathFinder):
    """Import hook that adds the tasks after robosuite's registry has been imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != ROBOSUITE_REGISTRY:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in finders)), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_add(module: ModuleType) -> None:
                execute(module)
                _add_tasks(module)

            spec.loader.exec_module = execute_and_add  # type: ignore[method-assign]
        return spec


def register_with_robosuite() -> None:
    """Register the tasks for ``robosuite.make``; robosuite may be imported before or after this call."""
    if ROBOSUITE_REGISTRY in sys.modules:
        _add_tasks(sys.modules[ROBOSUITE_REGISTRY])
    else:
        sys.meta_path.insert(0, _AfterImport())
