"""A few faults of each kind, the same ones every time; ``python -m tests.faults`` does many."""

import numpy as np
import pytest

from tests.faults import faults
from tests.faults.commands import Fault, run_train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("faults") / "whole"
    outcome = run_train(directory)
    assert outcome.works, outcome
    return directory


def test_a_training_that_is_killed_while_it_writes_loses_nothing(whole, tmp_path):
    """In the third checkpoint, then in what a resume writes before it learns."""
    files = ("step-000000030.partial/manifest.json", "config.json", "progress.csv", "best.pt")
    counts = faults.kills(tmp_path, whole, [Fault(file=name) for name in files])
    assert counts["kills"] == counts["  in the middle of writing"] == counts["  then evaluated"] == 4
    assert counts["runs that ended like an uninterrupted one"] == 1


def test_a_damaged_file_is_made_up_for(whole, tmp_path):
    """A flipped bit in the newest checkpoint's observations would be learned from."""
    counts = faults.damages(tmp_path, whole, 1, np.random.default_rng(0), "buffer.observations.npy")
    assert counts == {"damages": 1, "evaluate: works": 1, "resume: works": 1}


def test_a_full_disk_stops_a_training_that_goes_on_when_there_is_room(whole, tmp_path):
    counts = faults.full_disks(tmp_path, whole, 1, np.random.default_rng(0))
    assert counts["  stopped with one line"] == counts["  resumed to the end of an uninterrupted run"] == 1
