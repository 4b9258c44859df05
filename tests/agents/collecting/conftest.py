"""Short trainings in blocks."""

import dataclasses

import pytest

from agents.config import EvaluationConfig
from agents.train import train


@pytest.fixture(scope="module")
def build(configured):
    """Configure 90 steps in blocks of 5, with checkpoints at 30 and 60 and an evaluation every 40 steps."""

    def build(out, parallel="on", obs="state", **changes):
        config = configured(out, obs, steps=90, checkpoint_every=30, evaluation=EvaluationConfig(40, 1, 1))
        learner = dataclasses.replace(config.learner, learning_starts=20, batch_size=16)
        return dataclasses.replace(config, parallel=parallel, **{"learner": learner} | changes)

    return build


@pytest.fixture(scope="module")
def whole(build, tmp_path_factory):
    """A run in one process."""
    folder = tmp_path_factory.mktemp("whole")
    train(build(folder / "run", "off"))
    return folder / "run"
