"""Configurations as JSON files.

Files are untrusted: values that do not match the type annotations are rejected.
"""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from agents.config.methods import METHODS
from agents.config.train import TrainConfig, check
from envs.files import open_regular
from envs.ranges import MANY

# Settings of the learner that behavioural cloning does not use.
CRITIC = (
    *("n_steps", "tau", "buffer_size", "learning_starts", "gamma", "ent_coef", "backup_entropy"),
    *("target_bounds", "target_entropy", "reward_scale"),
)
# Settings that only methods with a part use, by the beginning of their names.
USED_BY = {
    "guide": ("learner.guide",),
    "potential": ("potential.",),
    "annealing": ("learner.annealing_steps",),
    "buffer": ("learner.demonstration_share",),
    "uses_demonstrations": ("demonstrations", "filter_key"),
    "critic": tuple(f"learner.{name}" for name in CRITIC),
}
LARGEST = 100_000  # maximum file size [bytes]
# Settings of earlier versions, which took `learner.gradient_steps` gradient steps after every environment step.
EARLIER = {
    "n_steps": 1,
    "actor_tau": 1.0,
    "block": 1,
    "tau": 0.005,
    "guide_decay": [MANY, MANY],
    "target_bounds": [-2.0, 1.0],
}


def to_json(config: Any) -> str:
    """Serialise a configuration as JSON; of a training, the settings that its method uses."""
    data = dataclasses.asdict(config)
    for name in unused(config):
        part, _, last = name.rpartition(".")
        del (data[part] if part else data)[last]
    return json.dumps(data, indent=2, default=os.fspath) + "\n"


def flat(config: Any) -> dict[str, Any]:
    """Return all settings as plain data by name; nested settings are named "part.name"."""
    data = as_data(config)
    parts = {name: part for name, part in data.items() if isinstance(part, dict)}
    settings = {name: value for name, value in data.items() if name not in parts}
    return settings | {f"{part}.{name}": value for part in parts for name, value in parts[part].items()}


def as_data(config: Any) -> dict[str, Any]:
    """Return a configuration as JSON represents it."""
    return json.loads(json.dumps(dataclasses.asdict(config), default=_plain))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else os.fspath(value)


def unused(config: Any) -> list[str]:
    """Return the names of the settings that the method of a training does not use."""
    if not isinstance(config, TrainConfig):
        return []
    method = METHODS[config.method]
    parts = [prefix for part, prefixes in USED_BY.items() if not getattr(method, part) for prefix in prefixes]
    return [name for name in flat(config) if name.startswith(tuple(parts))]


def read_config_file(
    path: Path, kind: Any = TrainConfig, check: Callable[[Any], None] = check, default: Any = None
) -> Any:
    """Read a configuration written by `to_json`.

    Args:
        path: JSON file.
        kind: Dataclass of the configuration.
        check: Raises ValueError for invalid values that the annotations allow.
        default: Configuration that has the values of missing settings; None takes the defaults of `kind`.

    Raises:
        FileNotFoundError: No such file.
        ValueError: The file is not regular, damaged, or not a configuration of this version; the message names the
            file and the setting.
    """
    data = read_settings(path, kind)
    try:
        config = validated(kind, data if default is None else _merged(default, data))
        check(config)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error
    return config


def read_settings(path: Path, kind: Any = TrainConfig) -> Any:
    """Read the content of a configuration file, in the names of this version.

    Raises:
        FileNotFoundError: No such file.
        ValueError: The file is not regular, or damaged; the message names it.
    """
    content = _content(path)
    try:
        data = json.loads(content)
        return _of_earlier_version(data) if kind is TrainConfig else data
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def is_of_earlier_version(path: Path) -> bool:
    """Return whether a file holds the configuration of an earlier version, whose checkpoints have another form.

    Raises:
        FileNotFoundError: No such file.
        ValueError: The file is not regular, or damaged.
    """
    content = json.loads(_content(path))
    learner = content.get("learner") if isinstance(content, dict) else None
    return isinstance(learner, dict) and not {"entropy_in_target", "gradient_steps"}.isdisjoint(learner)


class Settings:
    """Settings of a run as part of its checkpoints, to detect later changes of `config.json`."""

    def __init__(self, config: TrainConfig) -> None:
        left_out = ["steps", "out", "resume", "config", "parallel", "track", *unused(config)]
        self.settings = {name: value for name, value in flat(config).items() if name not in left_out}

    def get_state(self) -> dict[str, Any]:
        """Return the settings by name."""
        return self.settings

    def set_state(self, state: dict[str, Any]) -> None:
        """Compare the settings with those returned by `get_state`.

        Raises:
            ValueError: A setting differs; the message names it.
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


def _of_earlier_version(config: Any) -> Any:
    """Convert the settings of an earlier version to the names of this version.

    The preset "fast" no longer exists; its name is dropped, because the file holds all its settings.
    """
    if not isinstance(config, dict) or not isinstance(config.get("learner"), dict):
        return config
    config = {name: value for name, value in config.items() if (name, value) != ("preset", "fast")}
    learner = {"backup_entropy" if n == "entropy_in_target" else n: v for n, v in config["learner"].items()}
    if "gradient_steps" in learner:
        ratio = learner.pop("gradient_steps")
        learner = EARLIER | learner | {"update_ratio": ratio}
    method, share = config.get("method"), learner.get("guided_share")
    if share == 0:
        del learner["guided_share"]
    elif share and f"{method}+guide" in METHODS:  # the guide was in the names of methods with the potential
        config["method"] = f"{method}+guide"
    return config | {"learner": learner}


def _merged(default: Any, data: Any) -> Any:
    """Return the settings of a file, and those of `default` where the file has none."""
    if not isinstance(data, dict):
        return data
    settings = as_data(default)
    parts = {name for name, part in settings.items() if isinstance(part, dict) and isinstance(data.get(name), dict)}
    return settings | data | {name: settings[name] | data[name] for name in parts}


def validated(kind: Any, value: Any) -> Any:
    """Convert a JSON value to a dataclass according to its annotations.

    Raises:
        ValueError: The value does not match the annotations; the message states what is expected.
    """
    try:
        return TypeAdapter(kind).validate_json(json.dumps(value), strict=True, extra="forbid")
    except ValidationError as error:
        raise ValueError(describe(error)) from error


def describe(error: ValidationError) -> str:
    """Describe the first problem that pydantic found, in a line."""
    first = error.errors(include_url=False)[0]
    name = ".".join(part for part in first["loc"] if isinstance(part, str)) or "the content"
    if first["type"] == "unexpected_keyword_argument":
        return f"unknown setting {name!r:.80}"
    return f"{name} is {first['input']!r:.80}; {first['msg'].lower()}"
