"""Configurations: frozen dataclasses that tyro parses and that are stored with every checkpoint."""

from agents.config.methods import METHODS, Method
from agents.config.train import (
    PRESETS,
    EvaluationConfig,
    LearnerConfig,
    PotentialConfig,
    Tracker,
    TrainConfig,
    check,
    default_config,
    run_name,
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
    "run_name",
]
