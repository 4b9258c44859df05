"""A few faults of each kind; ``python -m tests.faults`` does many."""

import numpy as np
import pytest

from tests.faults import faults
from tests.faults.commands import run_train


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("faults") / "whole"
    outcome = run_train(directory)
    assert outcome.works, outcome
    return directory


@pytest.mark.parametrize("kind, number", [(faults.kills, 2), (faults.damages, 2), (faults.full_disks, 1)])
def test_runs_survive(kind, number, whole, tmp_path):
    counts = kind(tmp_path, whole, number, np.random.default_rng())
    assert number in counts.values()
