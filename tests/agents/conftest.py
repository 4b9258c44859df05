"""A small configuration whose files are made here: an untrained estimator and a recorded demonstration."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from agents.config.train import EvaluationConfig, LearnerConfig, TrainConfig
from agents.runs.callbacks import Progress
from agents.train import train
from envs.record import record
from shaping.value import ValueEstimator


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, Path]:
    """Demonstration and estimators for both observations."""
    folder = tmp_path_factory.mktemp("files")
    record(folder / "demonstrations.hdf5", obs=("state", "pointcloud"))
    torch.manual_seed(0)
    for obs, encoder in (("state", "state"), ("pointcloud", "pointnet")):
        ValueEstimator(obs, encoder).save(folder / f"{obs}.pt")
    return {name: folder / file for name, file in _names().items()}


def _names() -> dict[str, str]:
    return {"demonstrations": "demonstrations.hdf5", "state": "state.pt", "pointcloud": "pointcloud.pt"}


@pytest.fixture(scope="session")
def configured(files):
    """Build a configuration of a few hundred steps for a run directory and an observation."""

    def build(out: Path, obs: str = "state", **changes) -> TrainConfig:
        learner = LearnerConfig(
            batch_size=32, learning_starts=50, net_arch=(32, 32), annealing_steps=100, block=5, update_ratio=0.4
        )
        settings = {
            "obs": obs,
            "estimator": files[obs],
            "demonstrations": files["demonstrations"],
            "out": out,
            "steps": 200,
            "checkpoint_every": 100,
            "device": "cpu",
            "parallel": "off",
            "learner": learner,
            "evaluation": EvaluationConfig(every=100, episodes=1, final_episodes=1),
        }
        return TrainConfig(**settings | changes)

    return build


@pytest.fixture
def small(configured, tmp_path):
    """Build such a configuration with a directory of its own."""

    def build(obs: str = "state", **changes) -> TrainConfig:
        return configured(**{"out": tmp_path / "run", "obs": obs} | changes)

    return build


class Crash(Exception):
    """What stops a training in the middle of a step."""


@pytest.fixture(scope="session")
def crash():
    """Train until the middle of a step, as if the process had been killed there, or do something else there."""

    def run(config: TrainConfig, at: int, act: Callable[[], None] | None = None) -> None:
        def stop(progress: Progress) -> bool:
            if progress.num_timesteps == at:
                if act is None:
                    raise Crash
                act()
            return True

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Progress, "_on_step", stop)
            with pytest.raises((Crash, SystemExit)):
                train(config)

    return run
