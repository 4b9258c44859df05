"""Fit Ṽ_g in the obstacle-free plane: ``python -m agents.pretrain --obs state --out FILE``."""

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
import tyro
from stable_baselines3.common.monitor import Monitor

import envs  # noqa: F401 (registers the tasks)
from agents.build import DEFAULT_ENCODERS
from agents.calibration import Calibration, calibrate, plot_calibration
from agents.callbacks import Checkpoint
from agents.checkpoint import list_checkpoints, load_checkpoint, newest_intact, set_aside
from agents.config import Observation, check_temperature
from agents.evaluation import evaluate
from agents.features import EncoderExtractor, Features, SharedEncoderPolicy
from agents.files import write_text
from agents.finite import FiniteEnv, reporting
from agents.hardware import resolve_device
from agents.hindsight import HindsightReplayBuffer
from agents.lock import locked
from agents.sac import SAC
from envs.errors import one_line_errors
from envs.files import read_regular
from shaping.goals import make_goals
from shaping.value import ValueEstimator


@dataclass(frozen=True)
class GoalLearnerConfig:
    """SAC with hindsight goals; the values that made Ṽ_g count steps."""

    learning_rate: float = 3e-4
    """Of Adam, for actor, critics and temperature."""
    batch_size: int = 256
    """Transitions per update."""
    gradient_steps: int = 1
    """Updates per environment step."""
    learning_starts: int = 1000
    """Environment steps before the first update."""
    gamma: float = 0.99
    """Discount per environment step."""
    ent_coef: str = "auto_0.02"
    """Temperature; "auto_X" adapts it from X."""
    relabelled: float = 0.8
    """Share of hindsight goals."""
    nearby: float | None = None
    """Share of these that lie around the puck, not in its future; default: 0 for states, 1 for clouds."""
    nearby_steps: int = 20_000
    """Environment steps over which that share rises from 0."""
    goal_speed: float = 0.05
    """Largest goal velocity per axis, of the task's and of hindsight goals [m/s]; clouds show none: 0."""
    success_speed: float = 0.1
    """Largest speed relative to the goal that counts as reached [m/s]."""
    value_steps: int = 5000
    """Regression steps of the value head on the critics, after learning."""


@dataclass(frozen=True)
class PretrainConfig:
    """Learn the prior: a goal policy in the plane and its value Ṽ_g(s; g) = γ^steps."""

    obs: Observation = "state"
    """Observation of the prior."""
    encoder: str | None = None
    """Registered encoder; default: "state" for states, "pointnet" for clouds."""
    steps: int = 50_000
    """Environment steps."""
    out: Path | None = None
    """Estimator file; default: estimators/push-plane-OBS.pt. Checkpoints lie beside it, in FILE.partial, meanwhile."""
    resume: bool = False
    """Continue from the last checkpoint; of the configuration only --steps may change."""
    seed: int = 0
    """Of weights, exploration and starts."""
    device: str = "auto"
    """cpu, cuda or auto: CUDA where there is one."""
    episodes: int = 200
    """Fresh episodes of the final report."""
    evaluate_every: int = 5_000
    """Environment steps between progress reports, with a checkpoint each."""
    learner: GoalLearnerConfig = field(default_factory=GoalLearnerConfig)

    @property
    def file(self) -> Path:
        """Estimator file."""
        return self.out or Path("estimators") / f"push-plane-{self.obs}.pt"

    @property
    def partial(self) -> Path:
        """Directory of the checkpoints."""
        return self.beside(".partial")

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


def pretrain(config: PretrainConfig) -> tuple[ValueEstimator, dict[str, Any], Calibration]:
    """Learn the goal policy, fit the value head on its critics, and measure both.

    Returns:
        The estimator, its report (plain data) and its calibration.
    """
    model = learn(config)
    estimator = to_estimator(model, config)
    calibration = calibrate(estimator, make_plane(config), config.episodes)
    return estimator, {"config": _settings(config), **calibration.to_dict()}, calibration


def learn(config: PretrainConfig) -> SAC:
    """Learn the goal policy and its critics, with checkpoints.

    Raises:
        FileExistsError: There is an estimator; or there are checkpoints, and `resume` is not set.
        FileNotFoundError: There are none, and it is.
        ValueError: They were made with another configuration, or all are damaged; another process makes them; or a
            number is not finite.
    """
    resolve_device(config.device)
    torch.set_num_threads(1)
    _refuse(config)
    env, evaluation_env = FiniteEnv(make_plane(config), "training"), FiniteEnv(make_plane(config), "evaluation")
    model = make_goal_learner(config, env)
    callback = Checkpoint(config.partial, config.evaluate_every)
    try:
        with locked(config.partial), reporting(config.partial, env, model), callback.holding_signals():
            checkpoint = _prepare(config)
            if checkpoint is not None:
                load_checkpoint(model, checkpoint)
                print(f"resumed {config.partial} at step {model.num_timesteps}", flush=True)
            while model.num_timesteps < config.steps:
                steps = config.evaluate_every - model.num_timesteps % config.evaluate_every
                model.learn(min(steps, config.steps - model.num_timesteps), callback, reset_num_timesteps=False)
                rate = evaluate(model, evaluation_env, 50).success_rate
                print(f"{model.num_timesteps}/{config.steps} steps, goal policy succeeds in {rate:.0%}", flush=True)
    except KeyboardInterrupt:
        print(f"stopped at step {model.num_timesteps}; continue with the same command and --resume")
        raise SystemExit(130) from None
    return model


def _settings(config: PretrainConfig) -> dict[str, Any]:
    """What the result depends on, as plain data."""
    return {k: v for k, v in asdict(config).items() if k not in ("out", "resume")}


def _refuse(config: PretrainConfig) -> None:
    """Raise where there is something that must not be overwritten, nothing to resume, or no temperature."""
    check_temperature(config.learner.ent_coef)
    present = bool(list_checkpoints(config.partial))
    if config.file.exists():
        raise FileExistsError(f"{config.file} exists; move it away, or choose another --out")
    if config.resume and not present:
        raise FileNotFoundError(f"{config.partial} has no checkpoint to resume from")
    if present and not config.resume:
        raise FileExistsError(f"{config.partial} holds checkpoints; continue with --resume, or move them away")


def _prepare(config: PretrainConfig) -> Path | None:
    """Return the newest intact checkpoint to continue from, if any; write the configuration beside the checkpoints."""
    path = config.partial / "config.json"
    settings = json.loads(json.dumps(_settings(config)))
    if config.resume and _stored_settings(path) | {"steps": config.steps} != settings:
        raise ValueError(f"{path}: another configuration; only --steps may be changed when resuming")
    checkpoint, damages = newest_intact(config.partial)
    for damage in damages.values():
        print(damage)
    if config.resume and checkpoint is None:
        raise ValueError(f"{config.partial} has no intact checkpoint; put a copy back, or choose another --out")
    for damaged in damages:
        set_aside(damaged)
    write_text(path, json.dumps(settings, indent=2) + "\n")
    return checkpoint


def _stored_settings(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_regular(path)))
    except (FileNotFoundError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: damaged or missing ({error}); put it back, or choose another --out") from error


def make_plane(config: PretrainConfig) -> gym.Env:
    """Build the plane task with the prior's goals."""
    reached = config.learner.success_speed
    return gym.make("PushPlane-v0", obs=config.obs, success_speed=reached, goal_speed=config.goal_speed)


def make_goal_learner(config: PretrainConfig, env: gym.Env) -> SAC:
    """Compose SAC with hindsight goals.

    The critic's target has no entropy term and lies in [0, 1]: the value is γ to the number of steps.
    """
    learner = config.learner
    return SAC(
        SharedEncoderPolicy,
        Monitor(env),
        learning_rate=learner.learning_rate,
        buffer_size=config.steps,
        batch_size=learner.batch_size,
        gradient_steps=learner.gradient_steps,
        learning_starts=learner.learning_starts,
        gamma=learner.gamma,
        ent_coef=learner.ent_coef,
        target_bounds=(0.0, 1.0),
        entropy_in_target=False,
        replay_buffer_class=HindsightReplayBuffer,
        replay_buffer_kwargs={
            "goals": make_goals(config.obs),
            "goal_reward": env.unwrapped.goal_reward,  # type: ignore[attr-defined]
            "goal_speed": config.goal_speed,
            "relabelled": learner.relabelled,
            "nearby": config.nearby,
            "nearby_steps": learner.nearby_steps,
            "seed": config.seed,
        },
        policy_kwargs={
            "features_extractor_class": EncoderExtractor,
            "features_extractor_kwargs": {"encoder": config.encoder or DEFAULT_ENCODERS[config.obs]},
            "net_arch": [256, 256],
            "optimizer_kwargs": {"fused": True},
        },
        seed=config.seed,
        device=resolve_device(config.device),
    )


def to_estimator(model: SAC, config: PretrainConfig) -> ValueEstimator:
    """Copy encoder and goal policy, and regress the value head on min Q(s, μ(s)) over hindsight goals."""
    learner = config.learner
    estimator = ValueEstimator(
        config.obs,
        config.encoder or DEFAULT_ENCODERS[config.obs],
        hidden=(256, 256),
        gamma=learner.gamma,
        goal_speed=learner.goal_speed,
    ).to(model.device)
    actor: Any = model.actor
    policy: Any = estimator.policy
    estimator.encoder.load_state_dict(actor.features_extractor.encoder.state_dict())
    for target, source in zip(policy[:-1:2], actor.latent_pi[::2], strict=True):
        target.load_state_dict(source.state_dict())
    with torch.no_grad():
        policy[-1].weight.copy_(torch.cat([actor.mu.weight, actor.log_std.weight]))
        policy[-1].bias.copy_(torch.cat([actor.mu.bias, actor.log_std.bias]))
    estimator.encoder.eval()  # as it will be used
    optimizer = torch.optim.Adam(estimator.value.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, learner.value_steps)
    for _ in range(learner.value_steps):
        batch = model.replay_buffer.sample(512)  # type: ignore[union-attr]
        with torch.no_grad():
            features = estimator.encoder(batch.observations)
            action = actor.mu(actor.latent_pi(features)).tanh()
            target = torch.cat(model.critic(Features(features), action), dim=1).amin(dim=1).clamp(0.0, 1.0)  # type: ignore[arg-type]
        loss = (estimator.value(features).squeeze(-1) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return estimator.cpu().eval()


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.pretrain``."""
    config = tyro.cli(PretrainConfig, args=arguments, prog="python -m agents.pretrain")
    out = config.file
    estimator, report, calibration = pretrain(config)
    estimator.save(out)
    write_text(config.beside(".json"), json.dumps(report, indent=2) + "\n")
    plot_calibration(calibration, config.beside(".png"))
    shutil.rmtree(config.partial)
    print(
        f"goal policy succeeds in {calibration.success_rate:.1%} of {config.episodes} episodes; rank correlation of "
        f"value and steps that remain {calibration.rank_correlation:.2f}; largest error against γ^n up to 15 steps "
        f"{calibration.worst_error:.3f}"
    )
    print(f"wrote {out}, {config.beside('.json').name}, {config.beside('.png').name}")


if __name__ == "__main__":
    main()
