"""Table of the encoders of a comparison: size, time, calibration of the prior, and what the trainings reached."""

import json
import math
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium as gym

from agents import runs
from agents.config import METHODS, TrainConfig
from agents.methods import make_agent
from agents.methods.encoder import encoder_info, is_pretrained
from agents.progress import say
from agents.report.outcome import Groups
from agents.report.statistics import as_column, interquartile_mean
from agents.report.table import Table, median_and_worst
from agents.tasks import get_task, make_env
from envs.files import read_regular

HEADINGS = (
    *("runs", "encoder", "encoder training"),
    "parameters",
    "gradient step [ms]",
    "times the first row",
    "rank correlation of the prior",
    "largest error of the prior",
    "minutes until solved, median / worst",
    "success, interquartile mean [95 % interval]",
    "seeds",
)
EXPLANATION = (
    "Encoders: trainable parameters; a gradient step in which the encoder is trained, measured by this report; the "
    "calibration of the prior, as it stands beside the estimator; minutes until solved and final success, as above."
)
ROWS, STEPS = 64, 15  # rows of the replay buffer, and gradient steps of which the median is taken
UNKNOWN: tuple[Any, Any] = (None, None)


@dataclass(frozen=True)
class EncoderRow:
    """Encoder of the runs of one row of a comparison; what is not known is None.

    Attributes:
        runs: Label of the row.
        encoder: Name of the encoder.
        training: "frozen", "finetuned" or "scratch".
        parameters: Trainable parameters of the encoder.
        step: Duration of a gradient step in which the encoder is trained [s].
        rank_correlation: Rank correlation of Ṽ_g with the steps that remain; None for runs without a prior.
        worst_error: Largest error of Ṽ_g against γⁿ up to 15 steps.
        minutes: Minutes until each seed solved the task; None for one that did not.
        success: Success rate of each seed.
    """

    runs: str
    encoder: str
    training: str
    parameters: int | None
    step: float | None
    rank_correlation: float | None
    worst_error: float | None
    minutes: tuple[float | None, ...]
    success: tuple[float, ...]


def has_own_encoder(groups: Groups) -> bool:
    """Return whether a run has an encoder other than the default of its observation."""
    configs = [runs.read_config(Path(found[0].directory)) for found in groups.values()]
    return any(config.encoder not in (None, _default(config)) for config in configs)


def _default(config: TrainConfig) -> str | None:
    try:
        return get_task(config.task).view(config.obs).encoder
    except ValueError:  # of another program
        return None


def encoder_rows(groups: Groups) -> list[EncoderRow]:
    """Measure and describe the encoder of each row of a comparison, which takes a few seconds a row."""
    rows = []
    for label, outcomes in groups.items():
        config = runs.read_config(Path(outcomes[0].directory))
        name, size, prior = config.encoder or "-", UNKNOWN, UNKNOWN
        try:
            name, size, prior = encoder_info(config).name, _measured(_from_scratch(config)), _calibration(config)
        except (OSError, ValueError, ImportError, gym.error.Error) as error:  # of another machine, or not registered
            say(f"the encoder of {label} is not measured: {error}")
        minutes = tuple(None if run.solved_seconds is None else run.solved_seconds / 60 for run in outcomes)
        success = tuple(run.success_rate for run in outcomes)
        rows.append(EncoderRow(label, name, config.learner.encoder_training, *size, *prior, minutes, success))
    return rows


def encoder_table(rows: Sequence[EncoderRow]) -> Table:
    """Return the table of encoders."""
    first = next((row.step for row in rows if row.step is not None), None)
    cells = [
        [
            *(row.runs, row.encoder, row.training),
            _shown(row.parameters, "d"),
            _shown(row.step and 1000 * row.step, ".1f"),
            _shown(row.step and first and row.step / first, ".1f"),
            _shown(row.rank_correlation, ".2f"),
            _shown(row.worst_error, ".3f"),
            median_and_worst(row.minutes, 1),
            str(interquartile_mean(as_column(row.success))),
            str(len(row.success)),
        ]
        for row in rows
    ]
    return Table("encoders", HEADINGS, cells, EXPLANATION, names=3)


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _from_scratch(config: TrainConfig) -> TrainConfig:
    """Return a training of the same networks from scratch, without files."""
    learner = replace(config.learner, encoder_training="scratch", learning_starts=ROWS)
    return replace(config, method="sparse", seed=0, num_envs=1, steps=ROWS, estimator=None, out=None, learner=learner)


@lru_cache
def _measured(config: TrainConfig) -> tuple[int, float]:
    """Return the encoder's parameters and the duration of a gradient step on observations of the task [s]."""
    with closing(make_env(config)) as env:
        model = make_agent(config, env)
        model.learn(ROWS)  # random steps, which fill the replay buffer
    own_time = config.threads == 1 and model.device.type == "cpu"  # which other processes do not change
    now, spent = time.process_time if own_time else time.perf_counter, []
    for _ in range(STEPS + 1):
        start = now()
        model.train(1, config.learner.batch_size)
        spent.append(now() - start)
    return sum(p.numel() for p in model.actor.features_extractor.parameters()), median(spent[1:])


def _calibration(config: TrainConfig) -> tuple[float | None, float | None]:
    """Return rank correlation and largest error of the prior of a run; None without one, or without its report."""
    path = config.estimator or get_task(config.task).view(config.obs).estimator_of(config.encoder)
    if path is None or not (METHODS[config.method].potential or is_pretrained(config)):
        return None, None
    try:
        report = json.loads(read_regular(path.with_suffix(".json")))
        found = [float(report[name]) for name in ("rank_correlation", "worst_error")]
    except (OSError, ValueError, TypeError, KeyError):
        return None, None
    rank, error = (number if math.isfinite(number) else None for number in found)
    return rank, error
