"""Fit Ṽ_g in the obstacle-free plane: ``python -m agents.pretrain --obs state --out FILE``."""

import json
import shlex
import shutil
import sys
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
import tyro
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.monitor import Monitor

from agents.build import encoder_name
from agents.calibration import Calibration, calibrate, plot_calibration
from agents.callbacks import Checkpoint, Progress
from agents.checkpoint import list_checkpoints, load_checkpoint, newest_intact, set_aside, step_of
from agents.command_line import refuse_changes, value_of
from agents.config import check_settings
from agents.config_json import to_json
from agents.evaluation import evaluate
from agents.features import EncoderExtractor, Features, SharedEncoderPolicy
from agents.files import write_text
from agents.finite import FiniteEnv, reporting
from agents.hardware import resolve_device
from agents.hindsight import HindsightReplayBuffer
from agents.lock import locked
from agents.memory import check_pretraining_memory
from agents.pretrain_config import CONFIG, PretrainConfig, stored_config
from agents.progress import counted, say
from agents.ranges import PRETRAIN
from agents.sac import SAC
from envs.errors import one_line_errors
from shaping.goals import make_goals
from shaping.observed_goal import ObservedGoal
from shaping.value import ValueEstimator


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
        ValueError: They are damaged, of another configuration or process, or of more steps; a number is out of range,
            or not finite.
    """
    resolve_device(config.device)
    torch.set_num_threads(1)
    _refuse(config)
    env, evaluation_env = FiniteEnv(make_plane(config), "training"), FiniteEnv(make_plane(config), "evaluation")
    model = make_goal_learner(config, env)
    reports: list[float] = []
    checkpoints = Checkpoint(config.partial, config.evaluate_every)
    progress = Progress(config.steps, lambda: reports[-1] if reports else None)
    callback = CallbackList([checkpoints, progress])
    try:
        with (
            locked(config.partial),
            reporting(config.partial, model, env),
            checkpoints.holding_signals(),
            closing(progress),
        ):
            checkpoint = _prepare(config)
            if checkpoint is not None:
                load_checkpoint(model, checkpoint)
                print(f"resumed {config.partial} at step {model.num_timesteps}", flush=True)
            while model.num_timesteps < config.steps:
                steps = config.evaluate_every - model.num_timesteps % config.evaluate_every
                model.learn(min(steps, config.steps - model.num_timesteps), callback, reset_num_timesteps=False)
                reports.append(evaluate(model, evaluation_env, 50).success_rate)
                say(f"{model.num_timesteps}/{config.steps} steps, goal policy succeeds in {reports[-1]:.0%}")
    except KeyboardInterrupt:
        print(f"stopped at step {model.num_timesteps}; continue with --resume {shlex.quote(str(config.partial))}")
        raise SystemExit(130) from None
    return model


def _settings(config: PretrainConfig) -> dict[str, Any]:
    """What the result depends on, as plain data."""
    return {k: v for k, v in asdict(config).items() if k not in ("out", "resume")}


def _refuse(config: PretrainConfig) -> None:
    """Raise where there is something that must not be overwritten, nothing to resume, or a setting out of range."""
    check_settings(config, PRETRAIN)
    check_pretraining_memory(config, make_goals(config.obs).observation_shape)
    present = bool(list_checkpoints(config.partial))
    if config.file.exists():
        raise FileExistsError(f"{config.file} exists; move it away, or choose another --out")
    if config.resume is not None:
        if not present:
            raise FileNotFoundError(f"{config.partial} has no checkpoint to resume from")
        refuse_changes(config, stored_config(config.resume), config.resume)
    elif present:
        again = f"--resume {shlex.quote(str(config.partial))}"
        raise FileExistsError(f"{config.partial} holds checkpoints; continue with {again}, or move them away")


def _prepare(config: PretrainConfig) -> Path | None:
    """Return the newest intact checkpoint to continue from, if any; write the configuration beside the checkpoints."""
    checkpoint, damages = newest_intact(config.partial)
    for damage in damages.values():
        print(damage)
    if config.resume is not None and checkpoint is None:
        raise ValueError(f"{config.partial} has no intact checkpoint; put a copy back, or choose another --out")
    if checkpoint is not None and step_of(checkpoint) > config.steps:
        raise ValueError(f"--steps is {config.steps}, but {config.partial} has {step_of(checkpoint)} already")
    for damaged in damages:
        set_aside(damaged)
    here = replace(config, out=Path(config.file.name), resume=None)  # so that both may be moved
    write_text(config.partial / CONFIG, to_json(here))
    return checkpoint


def make_plane(config: PretrainConfig) -> gym.Env:
    """Build the plane task with the prior's goals; clouds are judged by what they show."""
    reached = config.learner.success_speed
    env = gym.make("PushPlane-v0", obs=config.obs, success_speed=reached, goal_speed=config.goal_speed)
    return env if config.obs == "state" else ObservedGoal(env, make_goals(config.obs))


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
            "features_extractor_kwargs": {"encoder": encoder_name(config)},
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
        encoder_name(config),
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
    for _ in counted(range(learner.value_steps), "value fit", "step"):
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


def parse(arguments: list[str] | None = None) -> PretrainConfig:
    """Read the command line; the pre-training to resume gives the defaults of everything else.

    Raises:
        FileNotFoundError: There is none to resume.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    resumed = value_of(arguments, "--resume")
    default = PretrainConfig() if resumed is None else stored_config(Path(resumed))
    return tyro.cli(PretrainConfig, args=arguments, default=default, prog="python -m agents.pretrain")


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.pretrain``."""
    config = parse(arguments)
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
