"""Configuration of a training: dataclasses and range checks."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from agents.config.methods import DEFAULT, METHODS
from envs.ranges import COUNT, MANY, SEED, Range, check_ranges

Tracker = Literal["wandb", "mlflow"]


@dataclass(frozen=True)
class PotentialConfig:
    """Potential Φ (paper, eq. demo_pot)."""

    combine: Literal["product", "sum"] = "product"
    """Combination of V_d and Ṽ_g: product V_d·Ṽ_g (γ to the power of all remaining steps) or sum V_d + Ṽ_g (paper)."""
    radius: Annotated[float, Range(0, 100, "(]")] = 0.08
    """Maximum distance between the achieved and a demonstrated goal in Δ(s), in the metric of the goal set [m]. It is
    smaller than the distance between two parts of the demonstration that an obstacle separates."""
    beta: Annotated[float, Range(0, 1)] = 0.0
    """Minimum value of a goal in Δ(s)."""
    terminal: Annotated[float, Range(-100, 100)] = 1.0
    """Value of Φ on the goal set."""
    spacing: Annotated[float, Range(0, 100)] = 0.005
    """Distance below which goals of different demonstrations count as duplicates, of which one is kept [m]; 0 keeps
    all."""


@dataclass(frozen=True)
class LearnerConfig:
    """Settings of SAC and of its replay buffer."""

    learning_rate: Annotated[float, Range(0, 1)] = 1e-3
    """Learning rate of Adam for actor, critics and temperature."""
    batch_size: Annotated[int, Range(1, 10**6)] = 256
    """Transitions per gradient step."""
    update_ratio: Annotated[float, Range(1e-3, 1000)] = 1.0
    """Gradient steps per environment step."""
    n_steps: Annotated[int, Range(1, 1000)] = 1
    """Number n of the n-step return; the return is shorter where the episode ends earlier."""
    block: Annotated[int, Range(1, 10**6)] = 8
    """Environment steps that are collected between two phases of gradient steps."""
    tau: Annotated[float, Range(0, 1, "(]")] = 0.05
    """Target update rate τ per gradient step; fewer gradient steps need a larger rate."""
    actor_tau: Annotated[float, Range(0, 1, "(]")] = 0.005
    """Rate of the exponential moving average of the actor's weights, which is the evaluated policy; 1 evaluates the
    actor itself."""
    buffer_size: Annotated[int, COUNT] = 1_000_000
    """Capacity of the replay buffer in transitions; memory is allocated as the buffer fills."""
    learning_starts: Annotated[int, Range(0, MANY)] = 500
    """Environment steps before the first gradient step."""
    gamma: Annotated[float, Range(0, 1, "(]")] = 0.99
    """Discount per environment step."""
    annealing_steps: Annotated[int, Range(0, MANY)] = 2_000
    """Environment steps over which the discount of the learner rises from 0 to gamma, for methods with annealing."""
    ent_coef: str = "auto_0.005"
    """Temperature; "auto_X" adapts it from the initial value X. An initial temperature of 1 outweighs the shaped
    reward, which is of order 0.01."""
    backup_entropy: bool = False
    """Include the entropy bonus in the critic's target, as SAC defines it."""
    target_bounds: Annotated[tuple[float, float] | None, Range(-1e6, 1e6)] = None
    """Range to which the critic's targets, in units of the scaled reward, are clipped; default: the range of reachable
    values, which follows from the form of Φ (no clipping with the entropy bonus in the target)."""
    target_entropy: Annotated[float, Range(-100, 100)] = -1.0
    """Entropy per dimension of the action towards which the temperature is adapted."""
    reward_scale: Annotated[float, Range(-1e6, 1e6)] = 1.0
    """Factor on the reward, shaping included."""
    demonstration_share: Annotated[float, Range(0, 1, "()")] = 0.1
    """Share of demonstrated transitions in each batch, for methods with demonstrations in the replay buffer."""
    guided_share: Annotated[float, Range(0, 1, "(]")] = 0.5
    """Probability per training step that the goal policy of the prior acts instead of the agent, for methods with the
    guide."""
    guide_decay: Annotated[tuple[int, int], Range(0, MANY)] = (4_000, 8_000)
    """Environment steps between which guided_share falls linearly to 0; a guide that acts to the end hides the agent's
    own failures from the replay buffer."""
    guide_noise: Annotated[float, Range(0, 100)] = 0.2
    """Standard deviation of the Gaussian noise on guided actions."""
    net_arch: Annotated[tuple[int, ...], Range(1, 8192)] = (128, 128)
    """Widths of the hidden layers of actor and critics."""
    precision: str = "float32"
    """Number format of the matrix products between hidden layers: float32, bfloat16 or auto, which selects bfloat16
    if the device has instructions for it (CPU: avx512_bf16, AMX)."""
    encoder_training: Literal["frozen", "finetuned", "scratch"] = "frozen"
    """Encoder weights: frozen (pre-trained and fixed; features are stored in the replay buffer), finetuned
    (pre-trained and trained further) or scratch (random initial weights)."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Settings of the evaluations during and after training."""

    every: Annotated[int, COUNT] = 2000
    """Environment steps between evaluations."""
    episodes: Annotated[int, Range(1, 10**6)] = 50
    """Episodes per evaluation."""
    final_episodes: Annotated[int, Range(1, 10**6)] = 100
    """Episodes of the final evaluation, with new initial states."""


@dataclass(frozen=True)
class TrainConfig:
    """Train an agent on the slot task, or on a task of your own."""

    obs: str = "state"
    """Observation of the agent: state (puck state, 8 numbers), pointcloud (20 points of the rendered depth image) or
    rgbd (image of 48×48 pixels with colours and depth; no goal to subtract, so for buffer, sparse and bc); a task of
    your own has names of its own, and its first observation is the default."""
    task: str = "push-slot"
    """Registered task, or module:Name of your own, whose defaults then apply; push-slot: push the puck into the
    U-shaped slot."""
    grids: Literal[1, 2, 3] = 1
    """Number of active reset grids; each has one demonstration."""
    method: str = DEFAULT
    """Parts that are switched on, as a row of the paper's table: buffer+potential+annealing, buffer+potential,
    potential+annealing, potential, buffer or sparse. +guide, after those with the potential, adds the guide, which the
    paper does not have. Or an imitation learning baseline: gail, pwil, dril, adril or bc."""
    encoder: str | None = None
    """Registered encoder, or module:Name of your own; default: that of the task's observation, "state" for states,
    "pointnet" for clouds, "rgbd_cnn" for images. Also for clouds: pointnet2, dgcnn, set_transformer, mlp, centroid."""
    estimator: Path | None = None
    """File of the pre-trained Ṽ_g; default: the shipped file for the observation and, if there is one, the encoder."""
    demonstrations: Path | None = None
    """File of demonstrations: HDF5, NumPy, or a Minari data set (directory or minari:ID); default: the shipped file for
    the number of grids."""
    filter_key: str | None = None
    """Name of the mask in the HDF5 file that lists the demonstrations to use, e.g. train; default: all
    demonstrations."""
    seed: Annotated[int, SEED] = 0
    """Seed of network weights, exploration and initial states."""
    steps: Annotated[int, COUNT] = 20_000
    """Environment steps of the training; for bc, which uses no environment, gradient steps."""
    num_envs: Annotated[int, Range(1, 1024)] = 1
    """Number of environments, stepped sequentially. A step of each counts as one environment step; the seeds are
    --seed, --seed + 1, …"""
    out: Path | None = None
    """Run directory; default: runs/TASK-GRIDS-OBS-METHOD[-PRESET]-seedN."""
    resume: Path | None = None
    """Run directory to continue from its last checkpoint; only --steps may differ from the stored configuration."""
    preset: Literal["default", "paper"] = "default"
    """Preset that sets the defaults of all settings; single settings can still be changed."""
    config: Path | None = None
    """JSON file whose settings take the place of the preset's, such as the config.json of a run."""
    device: str = "auto"
    """cpu, cuda or auto, which selects CUDA if it is available."""
    threads: Annotated[int, Range(1, 1024)] = 1
    """CPU threads of PyTorch."""
    parallel: Literal["auto", "on", "off"] = "auto"
    """Collect and evaluate in worker processes during the gradient steps; the result is the same. auto: on with at
    least two cores, but for observations drawn by OpenGL (rgbd), which stay in one process."""
    track: tuple[Tracker, ...] = ()
    """Experiment trackers that receive the log too: wandb (offline with WANDB_MODE=offline), mlflow (at the URI in
    MLFLOW_TRACKING_URI). They are an extra: pip install 'pushcloud[tracking]'."""
    stop_at_success: Annotated[float | None, Range(0, 1)] = None
    """Success rate at which the training ends: it stops after the first evaluation that reaches this rate."""
    checkpoint_every: Annotated[int, COUNT] = 5_000
    """Environment steps between checkpoints."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    potential: PotentialConfig = field(default_factory=PotentialConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def environment_steps(self) -> int:
        """Environment steps of the whole training: `steps`, rounded up to a multiple of `num_envs`."""
        return -(-self.steps // self.num_envs) * self.num_envs


TEMPERATURE = (1e-30, 1e6)  # range of the initial value if it is adapted; a fixed temperature may be 0
ENT_COEF = re.compile(r"auto|(auto_)?(\d+\.?\d*|\.\d+)(e-?\d+)?")


def check(config: TrainConfig) -> None:
    """Check the settings that the type annotations do not restrict.

    Raises:
        ValueError: The method is unknown or a number is out of range; the message lists the valid values.
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
    """Check that `target_bounds` increases and that `guide_decay` does not decrease.

    Raises:
        ValueError: A pair is in the wrong order.
    """
    low, high = learner.target_bounds or (0, 1)
    if low >= high:
        raise ValueError(f"--learner.target-bounds are {low} and {high}; give the lower one first")
    first, last = learner.guide_decay
    if first > last:
        raise ValueError(f"--learner.guide-decay is {first} and {last}; give the earlier step first")


def check_settings(config: Any) -> None:
    """Check the ranges of the numbers and the temperature of a training or a pre-training.

    Raises:
        ValueError: A number is out of range; the message names the flag.
    """
    check_ranges(config)
    check_temperature(config.learner.ent_coef)


def check_temperature(ent_coef: str) -> None:
    """Check a temperature; Stable-Baselines3 accepts any text that begins with "auto" and starts at 1.

    Raises:
        ValueError: The text is not a temperature, or the temperature is out of range.
    """
    (least, most), number = TEMPERATURE, ent_coef.removeprefix("auto_")
    fits = ENT_COEF.fullmatch(ent_coef) and (
        number == "auto" or (least if number != ent_coef else 0) <= float(number) <= most
    )
    if not fits:
        raise ValueError(
            f"--learner.ent-coef is {ent_coef!r:.80}; give auto, a number, or auto_ and one from {least:g} to {most:g}"
        )
