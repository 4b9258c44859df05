"""Videos of evaluation episodes."""

import contextlib
from pathlib import Path
from typing import Any

from agents.config import TrainConfig
from agents.evaluation.episodes import evaluate
from agents.tasks import make_env
from perception.video import open_video


def film(policy: Any, trained: TrainConfig, path: Path, episodes: int, seed: int) -> None:
    """Write the first episodes of an evaluation as a video.

    Args:
        policy: Object with the method `predict` of Stable-Baselines3.
        trained: Configuration of its training.
        path: File to write, .mp4 or .gif.
        episodes: Number of episodes.
        seed: Seed of the first episode.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_video(path) as append, contextlib.closing(make_env(trained, render_mode="rgb_array")) as env:
        evaluate(policy, env, episodes, seed, on_frame=append)
