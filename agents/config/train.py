"""Configuration of a training."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from agents.config.methods import METHODS
from envs.ranges import COUNT, MANY, SEED, Range, check_ranges

Observation = Literal["state", "pointcloud"]


@dataclass(frozen=True)
class PotentialConfig:
    """Φ (paper, eq. demo_pot)."""

    combine: Literal["product", "sum"] = "product"
    """V_d·Ṽ_g (γ to all remaining steps) or V_d + Ṽ_g (the paper)."""
    radius: Annotated[float, Range(0, 100, "(]")] = 0.08
    """Largest distance of the puck to a demonstrated goal in Δ(s) [m]."""
    beta: Annotated[float, Range(0, 1)] = 0.0
    """Least value of a goal in Δ(s)."""
    terminal: Annotated[float, Range(-100, 100)] = 1.0
    """Φ on the goal set."""
    spacing: Annotated[float, Range(0, 100)] = 0.005
    """Of several demonstrations, goals this close together are taken from one [m]; 0 keeps all."""


@dataclass(frozen=True)
class LearnerConfig:
    """SAC."""

    learning_rate: Annotated[float, Range(0, 1)] = 1e-3
    """Of Adam, for actor, critics and temperature."""
    batch_size: Annotated[int, Range(1, 10**6)] = 256
    """Transitions per update."""
    update_ratio: Annotated[float, Range(1e-3, 1000)] = 1.0
    """Updates per environment step."""
    n_steps: Annotated[int, Range(1, 1000)] = 1
    """Rewards of a target before the value that it is bootstrapped from; as many as are left in the episode at most."""
    block: Annotated[int, Range(1, 10**6)] = 8
    """Environment steps that are collected before the updates for them are taken."""
    tau: Annotated[float, Range(0, 1, "(]")] = 0.05
    """Share by which the target networks follow with each update; fewer updates need a larger one."""
    actor_tau: Annotated[float, Range(0, 1, "(]")] = 0.005
    """Share by which the weights of the evaluated policy follow the actor's with each update; 1: the actor's own."""
    buffer_size: Annotated[int, COUNT] = 1_000_000
    """Transitions; memory is taken as it fills."""
    learning_starts: Annotated[int, Range(0, MANY)] = 500
    """Environment steps before the first update."""
    gamma: Annotated[float, Range(0, 1, "(]")] = 0.99
    """Discount per environment step."""
    annealing_steps: Annotated[int, Range(0, MANY)] = 2_000
    """Environment steps over which the learner's discount rises from 0 to gamma, for methods with annealing."""
    ent_coef: str = "auto_0.005"
    """Temperature; "auto_X" adapts it from X. Shaped rewards are of order 0.01: a start at 1 drowns them."""
    entropy_in_target: bool = False
    """Entropy bonus in the critic's target (SAC's definition)."""
    target_bounds: Annotated[tuple[float, float] | None, Range(-1e6, 1e6)] = None
    """Range of the critic's targets, which are of the scaled reward; default: the range of reachable values, which
    follows from the form of Φ (no limits with an entropy bonus in the target)."""
    reward_scale: Annotated[float, Range(-1e6, 1e6)] = 1.0
    """Factor on the reward that is learnt from, shaping included."""
    demonstration_share: Annotated[float, Range(0, 1, "()")] = 0.1
    """Share of demonstrated transitions in each batch, for methods with the buffer."""
    guided_share: Annotated[float, Range(0, 1)] = 0.5
    """Share of training steps, drawn at each, in which the prior's goal policy acts, for methods with the potential."""
    guide_decay: Annotated[tuple[int, int], Range(0, MANY)] = (4_000, 8_000)
    """Environment steps between which that share falls linearly to 0; what the guide does for the agent, the agent
    does not learn from its own mistakes."""
    guide_noise: Annotated[float, Range(0, 100)] = 0.2
    """Standard deviation of noise on guided actions."""
    net_arch: Annotated[tuple[int, ...], Range(1, 8192)] = (128, 128)
    """Hidden layers of actor and critics."""
    precision: str = "float32"
    """Of the products between hidden layers: float32, bfloat16, or auto, bfloat16 where the device multiplies in it
    (CPU: avx512_bf16, AMX)."""
    encoder_training: Literal["frozen", "finetuned", "scratch"] = "frozen"
    """Pre-trained and fixed (its features are stored), pre-trained and trained on, or from random weights."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation during training."""

    every: Annotated[int, COUNT] = 2000
    """Environment steps between evaluations."""
    episodes: Annotated[int, Range(1, 10**6)] = 50
    """Episodes of each."""
    final_episodes: Annotated[int, Range(1, 10**6)] = 100
    """Fresh episodes after training, for the result."""


@dataclass(frozen=True)
class TrainConfig:
    """Train an agent on the slot task."""

    obs: Observation = "state"
    """Observation of the agent: puck state (8 numbers) or 20 points of rendered depth."""
    task: str = "push-slot"
    """Registered task; push-slot: push the puck into the U-shaped slot."""
    grids: Literal[1, 2, 3] = 1
    """Active reset grids, with one demonstration each."""
    method: str = "buffer+potential+annealing"
    """A row of the paper's table: buffer+potential+annealing, buffer+potential, potential+annealing, potential, buffer
    or sparse."""
    encoder: str | None = None
    """Registered encoder; default: "state" for states, "pointnet" for clouds."""
    estimator: Path | None = None
    """Pre-trained Ṽ_g; default: the shipped one for the observation."""
    demonstrations: Path | None = None
    """HDF5 file; default: the shipped one for the number of grids."""
    filter_key: str | None = None
    """Take the demonstrations that this mask of the file lists, e.g. train; default: all."""
    seed: Annotated[int, SEED] = 0
    """Of weights, exploration and starts."""
    steps: Annotated[int, COUNT] = 20_000
    """Environment steps."""
    num_envs: Annotated[int, Range(1, 1024)] = 1
    """Environments that are stepped one after another; every step of one counts. Seeds are --seed, --seed + 1, …"""
    out: Path | None = None
    """Run directory; default: runs/TASK-GRIDS-OBS-METHOD[-PRESET]-seedN."""
    resume: Path | None = None
    """Run directory to continue from its last checkpoint; of its configuration only --steps may change."""
    preset: Literal["default", "paper"] = "default"
    """Starting values of all settings; single ones may still be changed."""
    device: str = "auto"
    """cpu, cuda or auto: CUDA where there is one."""
    threads: Annotated[int, Range(1, 1024)] = 1
    """CPU threads of PyTorch."""
    parallel: Literal["auto", "on", "off"] = "auto"
    """Collect and evaluate in processes of their own while learning, with the same result; auto: with two cores."""
    stop_at_success: Annotated[float | None, Range(0, 1)] = None
    """End the training at the first evaluation with at least this success rate."""
    checkpoint_every: Annotated[int, COUNT] = 5_000
    """Environment steps between checkpoints."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    potential: PotentialConfig = field(default_factory=PotentialConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def environment_steps(self) -> int:
        """Environment steps of the whole training: `steps`, or the next multiple of `num_envs`."""
        return -(-self.steps // self.num_envs) * self.num_envs


# The paper's configuration (tables 1 and 2, "default configurations" of Stable-Baselines3's SAC).
PAPER = TrainConfig(
    preset="paper",
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
        entropy_in_target=True,
        target_bounds=(-2.0, 1.0),
        guided_share=0.0,
        net_arch=(256, 256),
        encoder_training="scratch",
    ),
    potential=PotentialConfig(combine="sum", radius=0.1),
    evaluation=EvaluationConfig(every=5000, episodes=20),
)


# A cloud shows no velocity: of several steps, less of a target is bootstrapped from what it does not tell.
CLOUDS = TrainConfig(obs="pointcloud", learner=LearnerConfig(n_steps=3))
# By name and observation; the paper trains twice as long on clouds.
PRESETS: dict[str, dict[str, TrainConfig]] = {
    "default": {"state": TrainConfig(), "pointcloud": CLOUDS},
    "paper": {"state": PAPER, "pointcloud": replace(PAPER, obs="pointcloud", steps=400_000)},
}


def run_name(config: TrainConfig) -> str:
    """Name of the run directory that a configuration gets by default."""
    preset = "" if config.preset == "default" else f"-{config.preset}"
    return f"{config.task}-{config.grids}-{config.obs}-{config.method}{preset}-seed{config.seed}"


TEMPERATURE = (1e-30, 1e6)  # of an adapted one at its start; a fixed one may be 0
ENT_COEF = re.compile(r"auto|(auto_)?(\d+\.?\d*|\.\d+)(e-?\d+)?")


def check(config: TrainConfig) -> None:
    """Check what a type does not say.

    Raises:
        ValueError: An unknown method, or a number out of range; names the valid ones.
    """
    if config.method not in METHODS:
        raise ValueError(f"--method: unknown method {config.method!r}; known methods: {', '.join(METHODS)}")
    check_settings(config)
    if len(config.learner.net_arch) > 16:
        raise ValueError(f"--learner.net-arch has {len(config.learner.net_arch)} layers; it may have 16")
    check_pairs(config.learner)
    if config.learner.block % config.num_envs:
        raise ValueError(
            f"--num-envs {config.num_envs} does not divide --learner.block {config.learner.block}, which is counted in "
            "environment steps; choose a multiple of it"
        )
    if not (updates := config.learner.update_ratio * config.learner.block) >= 1 or updates % 1:
        raise ValueError(
            f"--learner.update-ratio {config.learner.update_ratio:g} makes {updates:g} updates after each "
            f"--learner.block of {config.learner.block} steps; choose them so that it is a whole number"
        )


def check_pairs(learner: LearnerConfig) -> None:
    """Check pairs that must not decrease.

    Raises:
        ValueError: One does.
    """
    low, high = learner.target_bounds or (0, 1)
    if low >= high:
        raise ValueError(f"--learner.target-bounds are {low} and {high}; give the lower one first")
    first, last = learner.guide_decay
    if first > last:
        raise ValueError(f"--learner.guide-decay is {first} and {last}; give the earlier step first")


def check_settings(config: Any) -> None:
    """Check the numbers of a training or a pre-training, its temperature included.

    Raises:
        ValueError: One is out of range; names the flag.
    """
    check_ranges(config)
    check_temperature(config.learner.ent_coef)


def check_temperature(ent_coef: str) -> None:
    """Check a temperature; Stable-Baselines3 takes whatever begins with auto, and starts at 1.

    Raises:
        ValueError: It is none, or out of range.
    """
    (least, most), number = TEMPERATURE, ent_coef.removeprefix("auto_")
    fits = ENT_COEF.fullmatch(ent_coef) and (
        number == "auto" or (least if number != ent_coef else 0) <= float(number) <= most
    )
    if not fits:
        raise ValueError(
            f"--learner.ent-coef is {ent_coef!r:.80}; give auto, a number, or auto_ and one from {least:g} to {most:g}"
        )
