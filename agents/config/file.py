"""Configurations as JSON. A file may come from anybody: what does not fit the annotations is refused."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from agents.config.train import LearnerConfig, TrainConfig, check
from envs.files import open_regular
from envs.ranges import MANY

LARGEST = 100_000  # [bytes]
# What earlier versions did, which took `learner.gradient_steps` updates after every environment step.
EARLIER = {
    "n_steps": 1,
    "actor_tau": 1.0,
    "block": 1,
    "tau": 0.005,
    "guide_decay": [MANY, MANY],
    "target_bounds": [-2.0, 1.0],
}


def to_json(config: Any) -> str:
    """Serialise a configuration as JSON."""
    return json.dumps(dataclasses.asdict(config), indent=2, default=os.fspath) + "\n"


def flat(config: Any) -> dict[str, Any]:
    """Return the settings as plain data by name, those of parts as "part.name"."""
    data = json.loads(to_json(config))
    parts = {name: part for name, part in data.items() if isinstance(part, dict)}
    settings = {name: value for name, value in data.items() if name not in parts}
    return settings | {f"{part}.{name}": value for part in parts for name, value in parts[part].items()}


def read_config_file(path: Path, kind: Any = TrainConfig, check: Callable[[Any], None] = check) -> Any:
    """Read a configuration that `to_json` wrote; settings that it lacks have their defaults.

    Args:
        path: Its file.
        kind: Its dataclass.
        check: Raises ValueError for what the annotations allow and a training does not.

    Raises:
        FileNotFoundError: No such file.
        ValueError: Not a regular file, damaged, or not a configuration of this version; names file and setting.
    """
    content = _content(path)
    try:
        config = _read(kind, json.loads(content), "")
        check(config)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error
    return config


def is_of_earlier_version(path: Path) -> bool:
    """Whether the configuration in a file is that of a training which did not collect in blocks (`EARLIER`).

    Raises:
        FileNotFoundError: No such file.
        ValueError: Not a regular file, or damaged.
    """
    content = json.loads(_content(path))
    learner = content.get("learner") if isinstance(content, dict) else None
    return isinstance(learner, dict) and "gradient_steps" in learner


class Settings:
    """What a run was configured with, for its checkpoints: `config.json` can be edited, a training cannot."""

    def __init__(self, config: TrainConfig) -> None:
        may_change = ("steps", "out", "resume", "parallel")
        self.settings = {name: value for name, value in flat(config).items() if name not in may_change}

    def get_state(self) -> dict[str, Any]:
        """Return the settings by name."""
        return self.settings

    def set_state(self, state: dict[str, Any]) -> None:
        """Compare with what `get_state` returned.

        Raises:
            ValueError: A setting differs; names it.
        """
        for name, value in state.items():
            if self.settings.get(name) != value:
                now = self.settings.get(name)
                raise ValueError(f"config.json: {name} is {now!r}, but the run was made with {value!r}; put that back")


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{path}: a configuration of more than {LARGEST} bytes")
    return content


def _without_fast(config: dict[str, Any]) -> dict[str, Any]:
    """Leave out the name of a preset of earlier versions; all its settings are there."""
    return {name: value for name, value in config.items() if (name, value) != ("preset", "fast")}


def _in_blocks(learner: dict[str, Any]) -> dict[str, Any]:
    """Name the settings of an earlier version's learner as this version does."""
    if "gradient_steps" not in learner:
        return learner
    kept = {name: value for name, value in learner.items() if name != "gradient_steps"}
    return EARLIER | kept | {"update_ratio": learner["gradient_steps"]}


def _read(kind: Any, value: Any, name: str) -> Any:
    """Make of a JSON value what the annotation `kind` says.

    Raises:
        ValueError: It is something else; says what is wanted.
    """
    options = get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        kinds = get_type_hints(kind)
        value = EARLIER_NAMES.get(kind, dict)(value)
        unknown = [key for key in value if key not in kinds]
        if unknown:
            raise ValueError(f"unknown setting {name + unknown[0]!r}; known: {', '.join(kinds)}")
        make: Any = kind
        return make(**{key: _read(kinds[key], item, f"{name}{key}.") for key, item in value.items()})
    if get_origin(kind) is Literal and any(value == option and type(value) is type(option) for option in options):
        return value
    if type(None) in options:  # X | None
        return None if value is None else _read(options[0], value, name)
    if get_origin(kind) is tuple and isinstance(value, list):
        items = options[:1] * len(value) if options[-1] is Ellipsis else options
        if len(items) == len(value):
            return tuple(_read(item, number, name) for item, number in zip(items, value, strict=True))
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is float and type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    if kind in (int, str, bool) and type(value) is kind:
        return value
    wanted = getattr(kind, "__name__", kind) if not options else f"{kind}".replace("typing.", "")
    raise ValueError(f"{name.rstrip('.') or 'the configuration'} is {value!r:.80}, not {wanted}")


EARLIER_NAMES: dict[Any, Callable[[dict[str, Any]], dict[str, Any]]] = {
    TrainConfig: _without_fast,
    LearnerConfig: _in_blocks,
}
