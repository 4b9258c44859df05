"""A small configuration whose files are made here: an untrained estimator and a recorded demonstration."""

from pathlib import Path

import pytest
import torch

from agents.config import EvaluationConfig, LearnerConfig, TrainConfig
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


@pytest.fixture
def small(files, tmp_path):
    """Build a configuration of a few hundred steps for an observation."""

    def build(obs: str = "state", **changes) -> TrainConfig:
        learner = LearnerConfig(batch_size=32, learning_starts=50, net_arch=(32, 32), annealing_steps=100)
        settings = {
            "obs": obs,
            "estimator": files[obs],
            "demonstrations": files["demonstrations"],
            "out": tmp_path / "run",
            "steps": 200,
            "checkpoint_every": 100,
            "device": "cpu",
            "learner": learner,
            "evaluation": EvaluationConfig(every=100, episodes=1, final_episodes=1),
        }
        return TrainConfig(**settings | changes)

    return build
