"""Trainings that the page starts."""

import time

import pytest

import assets
from perception.visualize.web.training import Training


@pytest.mark.slow
def test_a_training_is_started_stopped_and_not_started_twice(tmp_path):
    file = tmp_path / "by-hand.hdf5"
    file.write_bytes(assets.path("demonstrations/by-hand.hdf5").read_bytes())
    training = Training(file, "state", "potential+annealing+guide", 25_000)
    assert training.running and training.summary() == f"training {training.run}: no evaluation yet"
    end = time.monotonic() + 60
    while not (training.run / "config.json").exists() and time.monotonic() < end:
        time.sleep(0.2)
    training.stop()
    training.close()
    assert not training.running
    assert training.summary().startswith(f"ended {training.run} with status ")
    with pytest.raises(ValueError, match=r"--resume .* continues it"):
        Training(file, "state", "potential+annealing+guide", 25_000)


def test_a_training_that_fails_says_why(tmp_path):
    training = Training(tmp_path / "nowhere.hdf5", "state", "potential", 1000)
    while training.running:
        time.sleep(0.2)
    assert "with status 2: error: " in training.summary() and "nowhere.hdf5: no such file" in training.summary()
