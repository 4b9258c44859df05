"""Evaluate a run: ``python -m agents.evaluate RUN --episodes 100 --json``."""

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import gymnasium as gym
import torch
import tyro

from agents import runs
from agents.evaluation.episodes import Evaluation, evaluate
from agents.evaluation.film import film
from agents.evaluation.robustness import UNCHANGED, check_robustness, evaluate_robustness, robustness_table
from agents.tasks import make_env
from agents.tasks.named import register_named
from envs.command import one_line_errors
from envs.ranges import SEED, Range, check_ranges
from perception.video import SUFFIXES

EVALUATE_SEED = 3_000_000  # differs from the seeds of training, of its evaluations and of the final evaluation


@dataclass(frozen=True)
class EvaluateConfig:
    """Evaluate a trained policy on new episodes: success rate with Wilson's 95 % interval."""

    run: Annotated[Path, tyro.conf.Positional]
    """Run directory or checkpoint."""
    episodes: Annotated[int, Range(1, 10**6)] = 100
    """Episodes, each with its own initial state."""
    seed: Annotated[int, SEED] = EVALUATE_SEED
    """Seed of the first episode; episode i is reset with seed + i."""
    imports: tuple[str, ...] = ()
    """Task and encoder of your own that the run uses, each as module:Name."""
    robustness: bool = False
    """Evaluate under other conditions too: noise of the depth, dropped pixels, errors of the calibration, a camera that
    was moved (clouds), and pucks of other sizes; of push-slot only, --episodes each."""
    json: bool = False
    """Print one JSON object, and nothing else, on standard output; for each episode that fails it has the seed, and the
    achieved goal at its start and end."""
    video: Path | None = None
    """Write the first episodes as a video (.mp4 or .gif); each frame shows the episode, the step and the outcome."""
    video_episodes: Annotated[int, Range(1, 10**6)] = 5
    """Episodes in the video."""


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.evaluate``."""
    config = tyro.cli(EvaluateConfig, args=arguments, prog="python -m agents.evaluate")
    check(config)
    register_named(config.imports, "--imports")
    with contextlib.redirect_stdout(sys.stderr) if config.json else contextlib.nullcontext():
        policy, trained = runs.load_policy(config.run)
        torch.set_num_threads(trained.threads)
        if config.robustness:
            check_robustness(trained)
        if config.video is not None:  # before the evaluation, so that a file that cannot be written fails early
            try:
                film(policy, trained, config.video, config.video_episodes, config.seed)
            except gym.error.Error as error:  # a library for rendering is missing
                raise ValueError(f"--video: {error}") from error
        results: dict[str, Evaluation] = {}
        if config.robustness:
            results = evaluate_robustness(policy, trained, config.episodes, config.seed)
            result = results[UNCHANGED.name]
        else:
            with contextlib.closing(make_env(trained)) as env:
                result = evaluate(policy, env, config.episodes, config.seed)
    if config.json:
        changed = {"robustness": {name: evaluation.to_dict() for name, evaluation in results.items()}}
        print(json.dumps(result.to_dict() | (changed if results else {})))
        return
    print(robustness_table(results) if results else _sentence(result))
    if config.video is not None:
        print(f"wrote {config.video}")


def _sentence(result: Evaluation) -> str:
    low, high = result.interval
    steps = "-" if result.mean_steps is None else f"{result.mean_steps:.1f}"
    return (
        f"success rate {result.success_rate:.2f} [{low:.2f}, {high:.2f}] over {result.episodes} episodes, "
        f"{steps} steps on average"
    )


def check(config: EvaluateConfig) -> None:
    """Check the settings that the type annotations do not restrict.

    Raises:
        ValueError: A number is out of range, or the video format is unknown.
    """
    check_ranges(config)
    if config.video is not None and config.video.suffix not in SUFFIXES:
        raise ValueError(f"--video {config.video}: unknown kind of file; give one that ends in {' or '.join(SUFFIXES)}")


if __name__ == "__main__":
    main()
