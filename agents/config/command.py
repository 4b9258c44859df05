"""Conversion of a training configuration to a command line."""

import shlex
from collections.abc import Mapping
from typing import Any

from agents.config.file import Settings, flat
from agents.config.presets import default_config
from agents.config.train import TrainConfig


def command(config: TrainConfig, settings: Mapping[str, Any] | None = None) -> str:
    """Return the command line of agents.train that reproduces a training configuration.

    Args:
        config: Configuration.
        settings: Defaults of its task.
    """
    preset = default_config(config.preset, config.obs, config.method, settings)
    wanted, usual = Settings(config).get_state(), flat(preset)
    words = ["--obs", config.obs, "--seed", config.seed]
    words += ["--preset", config.preset] * (config.preset != "default")
    words += ["--steps", config.steps] * (config.steps != preset.steps)
    for name, value in wanted.items():
        if name in ("obs", "seed", "preset") or value == usual[name]:
            continue
        part, _, last = name.replace("_", "-").rpartition(".")
        flag = f"--{part}{'.' * bool(part)}{'no-' * (value is False)}{last}"
        words += [flag] if isinstance(value, bool) else [flag, *(value if isinstance(value, list) else [value])]
    return shlex.join(["python", "-m", "agents.train", *map(str, words)])
