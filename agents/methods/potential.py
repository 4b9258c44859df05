"""Potential Φ of a training, composed of an estimator and demonstrations."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from agents.config import LearnerConfig, TrainConfig
from agents.tasks import get_task
from shaping.potential import Potential
from shaping.reward import value_bounds
from shaping.value import ValueEstimator


def check_goals(config: TrainConfig) -> None:
    """Check that observations have goals, without which there is neither a prior nor a potential.

    Raises:
        ValueError: They have none.
    """
    if get_task(config.task).view(config.obs).goals is None:
        raise ValueError(
            f"--method {config.method}: {config.obs!r} has no goal to subtract, so that it has neither a prior nor Φ; "
            "choose buffer, sparse or bc, and --learner.encoder-training scratch"
        )


def load_estimator(config: TrainConfig) -> ValueEstimator:
    """Read Ṽ_g, by default from the shipped file: that of the encoder, if there is one.

    Raises:
        FileNotFoundError: No such file.
        ValueError: The file is not an estimator or the estimator is for another observation; or no file is given and
            the task has no shipped estimator; or the observation has no goals.
    """
    check_goals(config)
    task = get_task(config.task)
    view = task.view(config.obs)
    path = config.estimator or view.estimator_of(config.encoder)
    if path is None:
        raise ValueError(f"task {config.task!r} has no estimator for {config.obs!r}; give one by --estimator")
    estimator = ValueEstimator.load(path, observation=config.obs)
    shape, actions = view.space.shape, task.action_space.shape[0]
    if estimator.in_shape[-1:] != shape[-1:] or estimator.action_dim != actions:
        raise ValueError(
            f"{path}: made for observations {estimator.in_shape} and {estimator.action_dim} actions, but "
            f"{config.obs!r} of task {config.task!r} has {shape} and {actions}; choose another --estimator"
        )
    return estimator


def make_potential(config: TrainConfig, estimator: ValueEstimator, demonstrations: Sequence[np.ndarray]) -> Potential:
    """Compose Φ of the estimator and the demonstrated observations.

    Raises:
        ValueError: The estimator has another discount than the learner.
    """
    if config.learner.gamma != estimator.gamma:
        raise ValueError(
            f"--learner.gamma is {config.learner.gamma}, but the estimator counts steps by {estimator.gamma}; "
            "give that, or an --estimator that was trained with another"
        )
    return Potential(estimator, demonstrations, gamma=config.learner.gamma, **dataclasses.asdict(config.potential))


def target_bounds(
    learner: LearnerConfig, potential: Potential | None, bounded: bool = True
) -> tuple[float, float] | None:
    """Return the range of the critic's targets: the configured one, by default the range of reachable values.

    Args:
        learner: Settings of the learner.
        potential: Φ; None without shaping.
        bounded: Whether the reward is the task's, whose values have a known range.
    """
    if learner.target_bounds is not None or learner.backup_entropy or not bounded:
        return learner.target_bounds
    largest, terminal = (0.0, 0.0) if potential is None else (potential.largest, potential.terminal)
    scaled = [learner.reward_scale * bound for bound in value_bounds(learner.gamma, largest, terminal)]
    return min(scaled), max(scaled)
