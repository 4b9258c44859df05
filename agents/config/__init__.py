"""Configurations: frozen dataclasses that tyro parses and that are stored with every checkpoint."""

from agents.config.methods import METHODS, Method
from agents.config.presets import PRESETS, default_config
from agents.config.train import (
    EvaluationConfig,
    LearnerConfig,
    PotentialConfig,
    Tracker,
    TrainConfig,
    check,
)

__all__ = [
    "METHODS",
    "PRESETS",
    "EvaluationConfig",
    "LearnerConfig",
    "Method",
    "PotentialConfig",
    "Tracker",
    "TrainConfig",
    "check",
    "default_config",
]
