"""Configuration of a pre-training: a frozen dataclass, read by tyro, written beside the checkpoints."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from agents.config.file import read_config_file
from agents.config.train import Observation, check_temperature
from agents.tasks import get_task
from envs.ranges import COUNT, MANY, SEED, Range

CONFIG = "config.json"


@dataclass(frozen=True)
class GoalLearnerConfig:
    """SAC with hindsight goals; the values that made Ṽ_g count steps."""

    learning_rate: Annotated[float, Range(0, 1)] = 3e-4
    """Of Adam, for actor, critics and temperature."""
    batch_size: Annotated[int, Range(1, 10**6)] = 256
    """Transitions per update."""
    gradient_steps: Annotated[int, Range(1, 1000)] = 1
    """Updates per environment step."""
    learning_starts: Annotated[int, Range(0, MANY)] = 1000
    """Environment steps before the first update."""
    gamma: Annotated[float, Range(0, 1, "(]")] = 0.99
    """Discount per environment step."""
    ent_coef: str = "auto_0.02"
    """Temperature; "auto_X" adapts it from X."""
    relabelled: Annotated[float, Range(0, 1)] = 0.8
    """Share of hindsight goals."""
    nearby: Annotated[float | None, Range(0, 1)] = None
    """Share of these that lie around the puck, not in its future; default: 0 for states, 1 for clouds."""
    nearby_steps: Annotated[int, Range(0, MANY)] = 20_000
    """Environment steps over which that share rises from 0."""
    goal_speed: Annotated[float, Range(0, 100)] = 0.05
    """Largest goal velocity per axis, of the task's and of hindsight goals [m/s]; clouds show none: 0."""
    success_speed: Annotated[float, Range(0, 100, "(]")] = 0.1
    """Largest speed relative to the goal that counts as reached [m/s]."""
    value_steps: Annotated[int, COUNT] = 5000
    """Regression steps of the value head on the critics, after learning."""


@dataclass(frozen=True)
class PretrainConfig:
    """Learn the prior: a goal policy in the plane and its value Ṽ_g(s; g) = γ^steps."""

    obs: Observation = "state"
    """Observation of the prior."""
    task: str = "push-slot"
    """Registered task whose prior is learned, in the environment that the task names for it."""
    encoder: str | None = None
    """Registered encoder; default: "state" for states, "pointnet" for clouds."""
    steps: Annotated[int, COUNT] = 50_000
    """Environment steps."""
    out: Path | None = None
    """Estimator file; default: estimators/push-plane-OBS.pt. Checkpoints lie beside it, in FILE.partial, meanwhile."""
    resume: Path | None = None
    """Directory FILE.partial of the checkpoints to continue from; of its configuration only --steps may change."""
    seed: Annotated[int, SEED] = 0
    """Of weights, exploration and starts."""
    device: str = "auto"
    """cpu, cuda or auto: CUDA where there is one."""
    episodes: Annotated[int, Range(1, 10**6)] = 200
    """Fresh episodes of the final report."""
    evaluate_every: Annotated[int, COUNT] = 5_000
    """Environment steps between progress reports, with a checkpoint each."""
    learner: GoalLearnerConfig = field(default_factory=GoalLearnerConfig)

    @property
    def file(self) -> Path:
        """Estimator file."""
        return self.out or Path("estimators") / f"{get_task(self.task).prior}-{self.obs}.pt"

    @property
    def partial(self) -> Path:
        """Directory of the checkpoints."""
        return self.beside(".partial") if self.resume is None else _with_name(self.resume)

    def beside(self, suffix: str) -> Path:
        """What belongs to the estimator file, by its suffix."""
        return self.file.with_name(self.file.name.removesuffix(".pt") + suffix)

    @property
    def goal_speed(self) -> float:
        """Largest goal velocity per axis [m/s]; 0 for clouds, which show no velocity."""
        return self.learner.goal_speed if self.obs == "state" else 0.0

    @property
    def nearby(self) -> float:
        """Share of hindsight goals around the puck; 1 for clouds, for which the future would give velocity away."""
        default = 0.0 if self.obs == "state" else 1.0
        return default if self.learner.nearby is None else self.learner.nearby


def stored_config(directory: Path) -> PretrainConfig:
    """Read the configuration of a pre-training that is not finished.

    Args:
        directory: FILE.partial, the directory of its checkpoints.

    Raises:
        FileNotFoundError: It is no such directory.
        ValueError: The configuration is damaged.
    """
    path = _with_name(directory) / CONFIG
    if not os.path.lexists(path):
        raise FileNotFoundError(f"{directory} holds no pre-training to resume: it has no {CONFIG}")
    config = read_config_file(path, PretrainConfig, lambda found: check_temperature(found.learner.ent_coef))
    name = Path(path.parent.name.removesuffix(".partial") + ".pt") if config.out is None else config.out
    return replace(config, out=path.parent.with_name(name.name))


def _with_name(directory: Path) -> Path:
    """The directory by its name, whatever it is called from where it is."""
    return directory if directory.name not in ("", "..") else directory.resolve()
