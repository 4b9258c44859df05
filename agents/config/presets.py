"""Presets of a training, and the defaults of tasks and methods on top of them."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from agents.config.file import as_data, validated
from agents.config.methods import BC_STEPS, METHODS
from agents.config.train import EvaluationConfig, LearnerConfig, PotentialConfig, TrainConfig

# The paper's configuration (tables 1 and 2; "default configurations" of SAC in Stable-Baselines3).
PAPER = TrainConfig(
    preset="paper",
    method="buffer+potential+annealing",
    steps=200_000,
    learner=LearnerConfig(
        learning_rate=3e-4,
        batch_size=512,
        update_ratio=2.0,
        n_steps=1,
        block=1,
        tau=0.005,
        actor_tau=1.0,
        learning_starts=100,
        annealing_steps=10_000,
        ent_coef="auto",
        backup_entropy=True,
        target_bounds=(-2.0, 1.0),
        net_arch=(256, 256),
        encoder_training="scratch",
    ),
    potential=PotentialConfig(combine="sum", radius=0.1, spacing=0.0),
    evaluation=EvaluationConfig(every=5000, episodes=20),
)


# A cloud contains no velocity, so its value estimate is less accurate; a 3-step return bootstraps less from it.
CLOUDS = TrainConfig(obs="pointcloud", learner=LearnerConfig(n_steps=3))
# Nor does an image, which has no goal to subtract either, so that there is neither a prior nor a potential. To draw one
# takes as long as a gradient step.
IMAGES = TrainConfig(
    obs="rgbd",
    method="buffer",
    learner=LearnerConfig(n_steps=3, encoder_training="scratch"),
    evaluation=EvaluationConfig(episodes=20),
)
# By preset name and observation; the paper trains twice as long on clouds.
PRESETS: dict[str, dict[str, TrainConfig]] = {
    "default": {"state": TrainConfig(), "pointcloud": CLOUDS, "rgbd": IMAGES},
    "paper": {"state": PAPER, "pointcloud": replace(PAPER, obs="pointcloud", steps=400_000)},
}


def default_config(
    preset: str, obs: str, method: str | None = None, settings: Mapping[str, Any] | None = None
) -> TrainConfig:
    """Return the configuration of a preset, with the defaults of a task and of a method's definition.

    Args:
        preset: Name of the preset.
        obs: Observation type; one that the preset does not know has the settings of states.
        method: Method, or None.
        settings: Settings of the task by name, such as "potential.radius".

    Raises:
        ValueError: There is no such setting.
    """
    config = PRESETS[preset].get(obs, replace(PRESETS[preset]["state"], obs=obs))
    config = with_settings(config, settings or {})
    if method is None or method not in METHODS:
        return config
    steps = config.steps if METHODS[method].critic else BC_STEPS
    return replace(config, learner=replace(config.learner, **METHODS[method].defaults), steps=steps)


def with_settings(config: TrainConfig, settings: Mapping[str, Any]) -> TrainConfig:
    """Return a configuration with other values, by names such as "steps" and "potential.radius".

    Raises:
        ValueError: There is no such setting, or a value is not of its type.
    """
    for name, value in settings.items():
        part, _, last = name.rpartition(".")
        owner = getattr(config, part, None) if part else config
        known = {setting.name for setting in fields(owner)} if is_dataclass(owner) else set()
        if last not in known:
            raise ValueError(f"settings of the task: unknown setting {name!r}")
        if is_dataclass(getattr(owner, last)):
            raise ValueError(f"settings of the task: {name!r} is a group; give each setting, such as '{name}.NAME'")
        changed: Any = replace(owner, **{last: value})  # type: ignore[type-var]
        config = replace(config, **{part: changed}) if part else changed
    try:
        return validated(TrainConfig, as_data(config))
    except (TypeError, ValueError) as error:
        raise ValueError(f"settings of the task: {error}") from error
