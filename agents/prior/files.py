"""Files of a pre-trained prior: the estimator, its settings and calibration, and a plot."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from agents.prior.calibration import Calibration
from agents.prior.config import PriorConfig
from agents.prior.plot import plot_calibration
from envs.files import write_text
from shaping.value import ValueEstimator


def refuse_existing(path: Path | None, flag: str) -> None:
    """Check that a file to be written does not exist.

    Raises:
        FileExistsError: It exists.
    """
    if path is not None and path.exists():
        raise FileExistsError(f"{path} exists; move it away, or choose another {flag}")


def write_prior(estimator: ValueEstimator, calibration: Calibration, config: PriorConfig) -> None:
    """Write an estimator and, beside it, its settings and calibration (.json) and a plot (.png); print the results."""
    settings = {k: v for k, v in asdict(config).items() if k not in ("out", "resume", "record_play")}
    report = {"config": settings, **calibration.to_dict()}
    estimator.save(config.file)
    write_text(config.beside(".json"), json.dumps(report, indent=2, default=os.fspath) + "\n")
    plot_calibration(calibration, config.beside(".png"))
    print(
        f"goal policy succeeds in {calibration.success_rate:.1%} of {config.episodes} episodes; rank correlation of "
        f"value and steps that remain {calibration.rank_correlation:.2f}; largest error against γ^n up to 15 steps "
        f"{calibration.worst_error:.3f}"
    )
    print(f"wrote {config.file}, {config.beside('.json').name}, {config.beside('.png').name}")
