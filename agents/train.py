"""Train an agent: ``python -m agents.train --obs pointcloud``."""

import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import tyro
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat

from agents import runs
from agents.build import make_agent, make_env, revision
from agents.callbacks import Checkpoint, CsvProgress, Evaluate, Progress, save_policy, score
from agents.checkpoint import list_checkpoints, load_checkpoint
from agents.config import PRESETS, TrainConfig, check, run_name, to_json
from agents.errors import one_line_errors
from agents.evaluation import EVALUATION_SEED, evaluate

FINAL_SEED = 2 * EVALUATION_SEED  # fresh starts: not those by which the best policy was chosen


def train(config: TrainConfig) -> dict[str, Any]:
    """Train as configured, evaluate on fresh episodes, write the run directory and return its result.

    Raises:
        FileExistsError: The run directory exists.
        FileNotFoundError: A file is missing, or there is nothing to resume.
        ValueError: Names, files or settings that do not fit together.
    """
    config, directory, checkpoint = _prepare(config)
    env, evaluation_env = make_env(config), make_env(config)
    model = make_agent(config, env)
    if checkpoint is not None:
        load_checkpoint(model, checkpoint)
        print(f"resumed {directory} at step {model.num_timesteps}")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / runs.CONFIG).write_text(to_json(config))
    (directory / "revision.txt").write_text(revision() + "\n")
    progress = CsvProgress(directory / "progress.csv", model.num_timesteps)
    model.set_logger(Logger(str(directory), [progress, TensorBoardOutputFormat(str(directory))]))
    settings = config.evaluation
    evaluation = Evaluate(evaluation_env, settings.every, settings.episodes, directory, config.stop_at_success)
    evaluation.best = max(map(score, progress.rows), default=evaluation.best)
    checkpoint_callback = Checkpoint(directory / runs.CHECKPOINTS, config.checkpoint_every)
    callbacks = [evaluation, checkpoint_callback, Progress(config.steps, evaluation)]
    start = time.monotonic()
    try:
        remaining = config.steps - model.num_timesteps
        if remaining > 0:
            with checkpoint_callback.holding_signals():
                model.learn(remaining, CallbackList(callbacks), log_interval=10, reset_num_timesteps=False)
    except KeyboardInterrupt:
        print(f"stopped at step {model.num_timesteps}; continue with --resume {directory}")
        raise SystemExit(130) from None
    seconds = time.monotonic() - start
    save_policy(model.policy, directory / runs.POLICY)
    policy, _ = runs.load_policy(directory / runs.POLICY)
    final = evaluate(policy, evaluation_env, settings.final_episodes, FINAL_SEED)
    result = {
        "method": config.method,
        "obs": config.obs,
        "grids": config.grids,
        "seed": config.seed,
        "environment_steps": model.num_timesteps,
        "seconds": round(seconds, 1),
        "command": " ".join(["python -m agents.train", *sys.argv[1:]]),
        **final.to_dict(),
    }
    runs.write_result(directory, result)
    env.close()
    evaluation_env.close()
    return result


def _prepare(config: TrainConfig) -> tuple[TrainConfig, Path, Path | None]:
    """Resolve run directory and checkpoint, before anything is built or written."""
    if config.resume is not None:
        directory = config.resume
        stored = runs.read_config(directory)
        found = list_checkpoints(directory / runs.CHECKPOINTS)
        if not found:
            raise FileNotFoundError(f"{directory} has no checkpoint to resume from")
        return dataclasses.replace(stored, steps=config.steps), directory, found[-1]
    check(config)
    directory = config.out or Path("runs") / run_name(config)
    if directory.exists() and any(directory.iterdir()):
        raise FileExistsError(f"{directory} exists; continue it with --resume {directory}, or choose another --out")
    return dataclasses.replace(config, out=directory), directory, None


def parse(arguments: list[str] | None = None) -> TrainConfig:
    """Read the command line; ``--preset`` or the run to resume gives the defaults of everything else.

    Raises:
        FileNotFoundError: There is no run to resume.
        ValueError: Another setting than the steps of a resumed run is changed.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    resumed = _value(arguments, "--resume")
    stored = runs.read_config(Path(resumed)) if resumed else None
    default = stored or PRESETS.get(_value(arguments, "--preset"), TrainConfig())
    config = tyro.cli(TrainConfig, args=arguments, default=default, prog="python -m agents.train")
    if stored is not None and dataclasses.replace(config, steps=stored.steps, resume=stored.resume) != stored:
        raise ValueError(f"{resumed} is resumed with the configuration stored there; only --steps may be changed")
    return config


def _value(arguments: list[str], flag: str) -> str:
    """What follows `flag`, or an empty string."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    return words[words.index(flag) + 1] if flag in words[:-1] else ""


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
