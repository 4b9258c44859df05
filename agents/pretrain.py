"""Pre-train Ṽ_g in the obstacle-free plane: ``python -m agents.pretrain --obs state --out FILE``."""

import shlex
import shutil
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
import tyro
from stable_baselines3.common.callbacks import CallbackList

from agents.collecting.finite_env import FiniteEnv
from agents.config.command_line import refuse_changes, value_of
from agents.config.file import to_json
from agents.config.train import check_settings
from agents.evaluation.episodes import evaluate
from agents.methods.memory import check_pretraining_memory
from agents.prior.calibration import Calibration, calibrate
from agents.prior.config import CONFIG, PretrainConfig, stored_config
from agents.prior.episodes import recorded_episodes, save_episodes
from agents.prior.files import refuse_existing, write_prior
from agents.prior.learner import make_goal_learner, make_play
from agents.prior.value_head import to_estimator
from agents.progress import say
from agents.runs.callbacks import Checkpoint, Progress
from agents.runs.checkpoint import list_checkpoints, load_checkpoint, newest_intact, set_aside, step_of
from agents.runs.fault_report import reporting
from agents.runs.lock import locked
from agents.sac import SAC
from agents.sac.device import resolve_device
from agents.tasks import first_observation, get_task
from agents.tasks.actions import to_environment
from agents.tasks.named import named_words, register_named
from envs.command import one_line_errors
from envs.files import write_text
from shaping.value import ValueEstimator


def pretrain(config: PretrainConfig) -> tuple[ValueEstimator, Calibration]:
    """Train the goal policy, fit the value head to its critics, and calibrate the estimator."""
    model = learn(config)
    estimator = to_estimator(model, config)
    return estimator, calibrate(estimator, make_play(config), config.episodes)


def learn(config: PretrainConfig) -> SAC:
    """Train the goal policy and its critics, write checkpoints and, if configured, the episodes of the training.

    Raises:
        FileExistsError: The estimator file exists; or checkpoints or the file of the episodes exist and `resume` is not
            set.
        FileNotFoundError: `resume` is set and there are no checkpoints.
        ValueError: The checkpoints are damaged, belong to another configuration, are in use by another process, or
            have more steps than configured; or a number is out of range or not finite.
    """
    resolve_device(config.device)
    torch.set_num_threads(1)
    _refuse(config)
    env, evaluation_env = FiniteEnv(make_play(config), "training"), FiniteEnv(make_play(config), "evaluation")
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
        again = f"--resume {shlex.quote(str(config.partial))}{named_words(config)}"
        print(f"stopped at step {model.num_timesteps}; continue with {again}")
        raise SystemExit(130) from None
    if config.record_play is not None:
        bounds = get_task(config.task).bounds
        save_episodes(
            config.record_play,
            config.obs,
            [
                episode._replace(actions=to_environment(episode.actions, bounds))
                for episode in recorded_episodes(model.replay_buffer)  # type: ignore[arg-type]
            ],
        )
        print(f"wrote {config.record_play}")
    return model


def _refuse(config: PretrainConfig) -> None:
    """Raise an error if a file would be overwritten, there is nothing to resume, or a setting is out of range."""
    check_settings(config)
    check_pretraining_memory(config)
    present = bool(list_checkpoints(config.partial))
    refuse_existing(config.file, "--out")
    if config.resume is not None:
        if not present:
            raise FileNotFoundError(f"{config.partial} has no checkpoint to resume from")
        refuse_changes(config, stored_config(config.resume), config.resume)
        return
    refuse_existing(config.record_play, "--record-play")
    if present:
        again = f"--resume {shlex.quote(str(config.partial))}"
        raise FileExistsError(f"{config.partial} holds checkpoints; continue with {again}, or move them away")


def _prepare(config: PretrainConfig) -> Path | None:
    """Return the newest intact checkpoint, if any, and write the configuration to the checkpoint directory."""
    checkpoint, damages = newest_intact(config.partial)
    for damage in damages.values():
        print(damage)
    if config.resume is not None and checkpoint is None:
        raise ValueError(f"{config.partial} has no intact checkpoint; put a copy back, or choose another --out")
    if checkpoint is not None and step_of(checkpoint) > config.steps:
        raise ValueError(f"--steps is {config.steps}, but {config.partial} has {step_of(checkpoint)} already")
    for damaged in damages:
        set_aside(damaged)
    here = replace(config, out=Path(config.file.name), resume=None)  # relative, so that the directory can be moved
    write_text(config.partial / CONFIG, to_json(here))
    return checkpoint


def parse(arguments: list[str] | None = None) -> PretrainConfig:
    """Parse the command line; with ``--resume``, the stored configuration provides the defaults.

    Raises:
        FileNotFoundError: There is no pre-training to resume.
        ValueError: A task or an encoder that is named module:Name cannot be imported.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    resumed = value_of(arguments, "--resume")
    for flag in ("--task", "--encoder"):
        register_named([value_of(arguments, flag)], flag)
    first = first_observation(value_of(arguments, "--task"))
    default = PretrainConfig(obs=first) if resumed is None else stored_config(Path(resumed))
    return tyro.cli(PretrainConfig, args=arguments, default=default, prog="python -m agents.pretrain")


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.pretrain``."""
    config = parse(arguments)
    write_prior(*pretrain(config), config)
    shutil.rmtree(config.partial)


if __name__ == "__main__":
    main()
