"""Configuration of a pre-training: frozen dataclasses that tyro parses and that are stored with the checkpoints."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from agents.config.file import read_config_file
from agents.config.train import check_temperature
from agents.tasks import get_task
from envs.ranges import COUNT, MANY, SEED, Range
from shaping.goals import CloudGoals, GoalSet

CONFIG = "config.json"


@dataclass(frozen=True)
class GoalLearnerConfig:
    """Settings of SAC with hindsight goals; with the defaults, Ṽ_g predicts γ^steps."""

    learning_rate: Annotated[float, Range(0, 1)] = 3e-4
    """Learning rate of Adam for actor, critics and temperature."""
    batch_size: Annotated[int, Range(1, 10**6)] = 256
    """Transitions per gradient step."""
    gradient_steps: Annotated[int, Range(1, 1000)] = 1
    """Gradient steps per environment step."""
    learning_starts: Annotated[int, Range(0, MANY)] = 1000
    """Environment steps before the first gradient step."""
    gamma: Annotated[float, Range(0, 1, "(]")] = 0.99
    """Discount per environment step."""
    ent_coef: str = "auto_0.02"
    """Temperature; "auto_X" adapts it from the initial value X."""
    relabelled: Annotated[float, Range(0, 1)] = 0.8
    """Share of transitions in a batch that are relabelled with hindsight goals."""
    nearby: Annotated[float | None, Range(0, 1)] = None
    """Share of the hindsight goals that are drawn around the puck instead of from the future of the episode; default:
    1 for clouds, else 0."""
    nearby_steps: Annotated[int, Range(0, MANY)] = 20_000
    """Environment steps over which the share nearby rises linearly from 0."""
    goal_speed: Annotated[float, Range(0, 100)] = 0.05
    """Maximum velocity per axis of the task's goals and of hindsight goals [m/s], where the goal set has velocities;
    clouds have none."""
    success_speed: Annotated[float, Range(0, 100, "(]")] = 0.1
    """Maximum speed relative to the goal at which the goal counts as reached [m/s]."""
    value_steps: Annotated[int, COUNT] = 5000
    """Gradient steps of the regression of the value head on the critics, after the training."""


@dataclass(frozen=True)
class OfflineConfig:
    """Settings of SAC on recorded episodes with hindsight goals; with the defaults, Ṽ_g predicts γ^steps."""

    learning_rate: Annotated[float, Range(0, 1)] = 3e-4
    """Learning rate of Adam for actor, critics and temperature."""
    batch_size: Annotated[int, Range(1, 10**6)] = 256
    """Transitions per gradient step."""
    gamma: Annotated[float, Range(0, 1, "()")] = 0.99
    """Discount per environment step."""
    tau: Annotated[float, Range(0, 1, "(]")] = 0.005
    """Target update rate τ per gradient step; fewer gradient steps need a larger rate."""
    ent_coef: str = "auto_0.02"
    """Temperature; "auto_X" adapts it from the initial value X."""
    cloning: Annotated[float, Range(0, 1000)] = 0.1
    """Steps that an action must save for each unit of squared distance from the recorded action; more keeps the goal
    policy nearer to the data, which data with few actions from each state need."""
    elsewhere: Annotated[float, Range(0, 1)] = 0.2
    """Share of the hindsight goals that are achieved at a random step of the data, not later in the same episode."""
    nearby: Annotated[float | None, Range(0, 1)] = None
    """Share of the hindsight goals that are drawn around the achieved one instead; default: 0 for states, 1 for
    clouds."""
    goal_speed: Annotated[float, Range(0, 100)] = 0.05
    """Maximum velocity per axis of the task's goals and of hindsight goals [m/s]; 0 for clouds, which contain no
    velocity."""
    success_speed: Annotated[float, Range(0, 100, "(]")] = 0.1
    """Maximum speed relative to the goal at which the goal counts as reached [m/s]."""
    value_steps: Annotated[int, COUNT] = 5000
    """Gradient steps of the regression of the value head on the critics, after the training."""


@dataclass(frozen=True)
class PriorConfig:
    """What every way to a prior has: the observation, the files, and the calibration at the end."""

    obs: str = "state"
    """Observation of the prior: state, pointcloud, or one of a task of your own, whose first is the default."""
    task: str = "push-slot"
    """Registered task, or module:Name of your own; the prior is learned in the environment that it defines for it."""
    encoder: str | None = None
    """Registered encoder, or module:Name of your own; default: that of the task's observation."""
    out: Path | None = None
    """Estimator file; default: estimators/push-plane-OBS.pt, or estimators/TASK-OBS.pt of a task of your own, with
    -ENCODER before the ending for another encoder than the default."""
    seed: Annotated[int, SEED] = 0
    """Seed of network weights, exploration, initial states and sampling."""
    device: str = "auto"
    """cpu, cuda or auto, which selects CUDA if it is available."""
    episodes: Annotated[int, Range(1, 10**6)] = 200
    """Episodes of the final calibration."""
    learner: Any = None
    """Settings of the learner."""

    @property
    def file(self) -> Path:
        """Estimator file."""
        task = get_task(self.task)
        names = [task.prior or self.task, self.obs]
        if self.encoder not in (None, task.view(self.obs).encoder):
            names.append(str(self.encoder))
        return self.out or Path("estimators") / f"{'-'.join(names).replace(':', '.')}.pt"

    def beside(self, suffix: str) -> Path:
        """Return the path of the file beside the estimator file with another suffix."""
        return self.file.with_name(self.file.name.removesuffix(".pt") + suffix)

    @property
    def goals(self) -> GoalSet:
        """Goal set of the observation.

        Raises:
            ValueError: The task has no such observation, or no goal set for it.
        """
        goals = get_task(self.task).view(self.obs).goals
        if goals is None:
            raise ValueError(f"task {self.task!r} has no goal set for {self.obs!r}; give its View goals=")
        return goals

    @property
    def goal_speed(self) -> float:
        """Maximum goal velocity per axis [m/s]; 0 where the goal set has no velocities."""
        velocities = len(range(*self.goals.counted.indices(self.goals.goal_dim))) < self.goals.goal_dim
        return self.learner.goal_speed if velocities else 0.0

    @property
    def nearby(self) -> float:
        """Share of hindsight goals around the puck; 1 for clouds, because future goals would reveal the velocity."""
        default = 1.0 if isinstance(self.goals, CloudGoals) else 0.0
        return default if self.learner.nearby is None else self.learner.nearby


@dataclass(frozen=True)
class PretrainConfig(PriorConfig):
    """Pre-train the prior: a goal policy in the obstacle-free plane and its value Ṽ_g(s; g) = γ^steps."""

    steps: Annotated[int, COUNT] = 50_000
    """Environment steps of the training. Until the estimator is written, FILE.partial holds the checkpoints."""
    resume: Path | None = None
    """Directory FILE.partial of the checkpoints to resume from; only --steps may differ from the stored
    configuration."""
    evaluate_every: Annotated[int, COUNT] = 5_000
    """Environment steps between evaluations; a checkpoint is written at each."""
    record_play: Path | None = None
    """File (.npz) for the episodes of the training, from which agents.pretrain_offline learns a prior too."""
    learner: GoalLearnerConfig = field(default_factory=GoalLearnerConfig)

    @property
    def partial(self) -> Path:
        """Directory of the checkpoints."""
        return self.beside(".partial") if self.resume is None else _with_name(self.resume)


@dataclass(frozen=True)
class OfflinePretrainConfig(PriorConfig):
    """Pre-train the prior from recorded episodes alone: a goal policy and its value Ṽ_g(s; g) = γ^steps.

    The environment is used for the calibration at the end.
    """

    data: Path = field(kw_only=True)
    """Episodes with actions of the environment: .npz of agents.pretrain --record-play, HDF5 of demonstrations, or a
    Minari data set."""
    steps: Annotated[int, COUNT] = 30_000
    """Gradient steps."""
    learner: OfflineConfig = field(default_factory=OfflineConfig)


def stored_config(directory: Path) -> PretrainConfig:
    """Read the configuration of an unfinished pre-training.

    Args:
        directory: Directory FILE.partial of its checkpoints.

    Raises:
        FileNotFoundError: The directory holds no pre-training.
        ValueError: The configuration is damaged.
    """
    path = _with_name(directory) / CONFIG
    if not os.path.lexists(path):
        raise FileNotFoundError(f"{directory} holds no pre-training to resume: it has no {CONFIG}")
    config = read_config_file(path, PretrainConfig, lambda found: check_temperature(found.learner.ent_coef))
    name = Path(path.parent.name.removesuffix(".partial") + ".pt") if config.out is None else config.out
    return replace(config, out=path.parent.with_name(name.name))


def _with_name(directory: Path) -> Path:
    """Resolve a path without a name, such as "." or "..", to the named directory."""
    return directory if directory.name not in ("", "..") else directory.resolve()
