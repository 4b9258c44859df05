"""Train an agent: ``python -m agents.train --obs pointcloud``."""

import copy
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import tyro
from stable_baselines3.common.callbacks import CallbackList

from agents import runs
from agents.collecting.finite_env import FiniteEnv
from agents.collecting.stopwatch import describe_shares
from agents.collecting.worker import Inline, Worker
from agents.config import METHODS, PRESETS, TrainConfig, default_config
from agents.config.command import command
from agents.config.command_line import refuse_changes, refuse_unused, value_of
from agents.config.file import Settings, read_config_file, read_settings, to_json
from agents.evaluation.episodes import EVALUATION_SEED, Evaluator, evaluate
from agents.methods import collect_beside, make_agent
from agents.methods.encoder import check_encoder, needs_prior
from agents.methods.memory import check_memory, describe_memory, release_memory
from agents.methods.potential import check_goals
from agents.runs.callbacks import Checkpoint, Evaluate, GoodEnough, Progress
from agents.runs.fault_report import reporting
from agents.runs.lock import locked
from agents.runs.log import RunLogger
from agents.runs.machine import Occupation
from agents.runs.resume import advice, prepare, refuse_existing, resume
from agents.runs.tracking import TRACKERS
from agents.sac import SAC
from agents.tasks import available_tasks, first_observation, get_task, make_env
from agents.tasks.named import register_named
from envs.command import one_line_errors
from envs.files import write_text
from shaping.tensors import write_tensors

FINAL_SEED = 2 * EVALUATION_SEED  # differs from the seeds of the evaluations that select the best policy


def train(config: TrainConfig) -> dict[str, Any]:
    """Train an agent, evaluate it on new episodes, write the run directory and return the result.

    Raises:
        FileExistsError: The run directory exists.
        FileNotFoundError: A file is missing, or there is no run to resume.
        ValueError: Names, files or settings do not fit together, a number is not finite, or another process trains
            in the run directory.
        OSError: The run directory cannot be written; its last checkpoint is kept.
    """
    resumed = config.resume is not None
    config, directory = prepare(config)
    settings = Settings(config).get_state()
    trackers = [TRACKERS[name](directory, settings) for name in dict.fromkeys(config.track)]
    check_encoder(config)
    check_memory(config)
    environments = [FiniteEnv(make_env(config), role) for role in _roles(config)]
    evaluation_env = FiniteEnv(make_env(config), "evaluation")
    model = make_agent(config, *environments)
    collect_beside(model, config)
    release_memory()
    print(describe_memory(config), flush=True)
    if model.guide is not None:
        first, last = config.learner.guide_decay
        share = f"{model.guide.share:.0%} of the training steps, from step {first} on in fewer, from {last} on in none"
        print(
            f"the prior's goal policy acts in {share}: rollout/* includes them, eval/* is the agent alone", flush=True
        )
    if config.steps <= model.learning_starts:
        print(f"nothing is learned: --steps {config.steps}, --learner.learning-starts {model.learning_starts}")
    with locked(directory):
        if not resumed:
            refuse_existing(directory)
        beside = resume(model, config, directory) if resumed else {}
        if hasattr(model.replay_buffer.reward, "prepare"):  # type: ignore[union-attr]
            model.replay_buffer.reward.prepare()  # type: ignore[union-attr]
        write_text(directory / runs.CONFIG, to_json(config))
        occupation = Occupation()
        try:
            log = RunLogger(directory, model.num_timesteps, model.target_bounds, trackers)
            with reporting(directory, model), closing(log) as logger:
                seconds = _learn(model, evaluation_env, config, directory, beside, logger)
                result = _finish(model, evaluation_env, config, directory, seconds, occupation.others())
        except OSError as error:
            raise OSError(f"{error}; {advice(directory)}") from error
    for env in (*environments, evaluation_env):
        env.close()
    return result


def _roles(config: TrainConfig) -> list[str]:
    """Return the names of the training environments in error messages."""
    count = config.num_envs
    return ["training"] if count == 1 else [f"training in environment {i + 1} of {count}" for i in range(count)]


def _learn(
    model: SAC,
    evaluation_env: gym.Env,
    config: TrainConfig,
    directory: Path,
    beside: dict[str, Any],
    logger: RunLogger,
) -> float:
    """Train up to the configured step with evaluations, checkpoints and logs, and return the duration [s]."""
    settings, collected = config.evaluation, model.collected
    assert collected is not None
    model.set_logger(logger)
    policy = copy.deepcopy(model.policy).cpu()
    evaluator = Evaluator(policy, evaluation_env, settings.episodes, shown=not collected.beside)
    caller = Worker(evaluator, "the evaluating process") if collected.beside else Inline(evaluator)
    caller.receive = collected.clock.watched(caller.receive, "evaluating")  # type: ignore[method-assign]
    with closing(caller):
        progress = Progress(config.environment_steps, lambda: evaluation.success_rate)
        evaluation = Evaluate(caller, settings.every, directory, lambda: progress.seconds, config.stop_at_success)
        parts: dict[str, Any] = {"config": Settings(config), "log": logger, "evaluation": evaluation, "clock": progress}
        for name, state in beside.items():
            parts[name].set_state(state)
        checkpoint = Checkpoint(directory / runs.CHECKPOINTS, config.checkpoint_every, parts)
        if isinstance(caller, Inline):
            evaluator.stop = lambda: checkpoint.interrupted
        remaining = config.environment_steps - model.num_timesteps
        if (remaining == 0 and evaluation.waiting is None) or evaluation.good_enough:
            return progress.seconds
        for name in (runs.RESULT, runs.POLICY):  # left by a shorter training in this directory
            (directory / name).unlink(missing_ok=True)
        (directory / runs.CHECKPOINTS).mkdir(exist_ok=True)
        write_text(directory / "revision.txt", f"{runs.revision()}\n")
        try:
            with checkpoint.holding_signals(), closing(progress):
                callbacks = CallbackList([evaluation, checkpoint, progress])
                try:
                    model.learn(remaining, callbacks, log_interval=10, reset_num_timesteps=False)
                except Exception:
                    if collected.failed or caller.failed:  # the agent is between two blocks and can be saved
                        checkpoint.save()
                    raise
        except GoodEnough:
            checkpoint.save()
        except KeyboardInterrupt:
            print(f"stopped at step {model.num_timesteps}; {advice(directory)}")
            raise SystemExit(130) from None
        finally:
            collected.stop()
    model.dump_logs()
    print(describe_shares(collected.shares()))
    return progress.seconds


def _finish(
    model: SAC, evaluation_env: gym.Env, config: TrainConfig, directory: Path, seconds: float, others: float
) -> dict[str, Any]:
    """Write the policy, evaluate the policy read from the file, and write the result."""
    write_tensors(directory / runs.POLICY, runs.policy_weights(model.averaged_actor))
    policy, _ = runs.load_policy(directory / runs.POLICY)
    final = evaluate(policy, evaluation_env, config.evaluation.final_episodes, FINAL_SEED)
    result = {
        "method": config.method,
        "obs": config.obs,
        "grids": config.grids,
        "seed": config.seed,
        "environment_steps": model.num_timesteps if METHODS[config.method].critic else 0,
        "seconds": round(seconds, 1),
        "others": round(others, 2),
        "command": command(config, get_task(config.task).settings),
        **{
            name: value for name, value in final.to_dict().items() if name != "failures"
        },  # `agents.evaluate` lists them
    }
    demonstrated: Any = model.replay_buffer.demonstrations  # type: ignore[union-attr]
    if demonstrated is not None:
        result["demonstrations"] = int(demonstrated.dones[: demonstrated.size()].sum())
    runs.write_result(directory, result)
    return result


def parse(arguments: list[str] | None = None) -> TrainConfig:
    """Parse the command line; ``--preset`` or the resumed run provides the defaults.

    Raises:
        FileNotFoundError: There is no run to resume.
        ValueError: A setting of the resumed run other than the steps is changed, or a task or an encoder that is named
            module:Name cannot be imported; the message names it.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    resumed = value_of(arguments, "--resume")
    if resumed is not None and value_of(arguments, "--config") is not None:
        raise ValueError("--config has no effect with --resume, which continues with the configuration of the run")
    stored = None if resumed is None else runs.read_config(Path(resumed))
    for flag in ("--task", "--encoder"):
        register_named([value_of(arguments, flag)], flag)
    default = stored or _default(arguments)
    config = tyro.cli(TrainConfig, args=arguments, default=default, prog="python -m agents.train")
    config = replace(config, config=None)  # its settings are those of this configuration now
    get_task(config.task).view(config.obs)  # raises for an observation that the task does not have
    if config.method in METHODS:
        refuse_unused(config, default)
        if needs_prior(config):
            check_goals(config)
    if stored is not None:
        refuse_changes(config, stored, Path(str(resumed)))
    return config


def _default(arguments: list[str]) -> TrainConfig:
    """Return the configuration that the flags of a command line change: a file's, or the preset's."""
    names = ("preset", "obs", "method", "task", "config")
    preset, obs, method, task, file = (value_of(arguments, f"--{name}") for name in names)
    if file is not None:
        if preset is not None:
            raise ValueError("--config and --preset both give the defaults of all settings; leave one out")
        if not Path(file).exists():
            raise FileNotFoundError(f"--config {file}: no such file")
        found = read_settings(Path(file))
        given = (
            {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
        )
        preset, obs = given.get("preset"), obs or given.get("obs")
        method, task = method or given.get("method"), task or given.get("task")
    settings = get_task(task).settings if task in available_tasks() else {}
    config = default_config(
        preset if preset in PRESETS else "default", obs or first_observation(task), method, settings
    )
    return config if file is None else replace(read_config_file(Path(file), default=config), out=None, resume=None)


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.train``."""
    result = train(parse(arguments))
    low, high = result["interval"]
    steps = "-" if result["mean_steps"] is None else f"{result['mean_steps']:.1f}"
    print(
        f"success rate {result['success_rate']:.2f} [{low:.2f}, {high:.2f}] over {result['episodes']} episodes, "
        f"{steps} steps on average, {result['environment_steps']} environment steps in {result['seconds'] / 60:.1f} min"
    )
    print(f"wrote {result['directory']}: {', '.join(result['files'])}")


if __name__ == "__main__":
    main()
