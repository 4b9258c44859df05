"""Trainings on a real Ray cluster of two nodes on this machine."""

import dataclasses
import threading
import time
from pathlib import Path

import pytest

from agents import runs
from agents.config.train import EvaluationConfig
from agents.launch.ray_cluster import run_on_ray
from agents.runs.log import read_progress
from agents.train import train


@pytest.mark.slow
def test_a_run_whose_node_is_lost_is_resumed_on_the_other(small, tmp_path, monkeypatch, capfd):
    """Two runs on two nodes of one CPU each; the node of the first is lost after its first checkpoint.

    The resumed run must end with the numbers of a run that nothing interrupts.
    """
    from ray.cluster_utils import Cluster

    monkeypatch.chdir(tmp_path)
    training = small(steps=800, checkpoint_every=200, evaluation=EvaluationConfig(400, 1, 2))
    trainings = {tmp_path / f"seed{seed}": dataclasses.replace(training, seed=seed) for seed in range(2)}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    errors = []

    def launch():
        try:
            run_on_ray(trainings, cluster.address)
        except Exception as error:
            errors.append(error)

    try:
        first = cluster.add_node(num_cpus=1)
        launched = threading.Thread(target=launch)
        launched.start()
        until = time.monotonic() + 120
        while not list(tmp_path.glob("seed?/checkpoints/step*")) and time.monotonic() < until:
            time.sleep(0.05)
        (interrupted,) = [path for path in trainings if path.exists()]
        cluster.add_node(num_cpus=1)
        cluster.remove_node(first, allow_graceful=False)
        assert not (interrupted / runs.RESULT).exists()
        launched.join(timeout=180)
        logs = Path(cluster.head_node.get_session_dir_path(), "logs").glob("worker-*.out")
        assert any(f"resumed {interrupted} at step" in log.read_text() for log in logs)
    finally:
        cluster.shutdown()
    assert not errors
    for directory, one in trainings.items():
        assert runs.read_result(directory)["environment_steps"] == 800, directory
        assert runs.read_config(directory).seed == one.seed
    train(dataclasses.replace(trainings[interrupted], out=tmp_path / "alone"))
    assert timeless(interrupted) == timeless(tmp_path / "alone")


def timeless(directory):
    rows = read_progress(directory / "progress.csv")
    return [{k: v for k, v in row.items() if not k.startswith("time/") and k != "eval/seconds"} for row in rows]


@pytest.mark.slow
def test_a_run_that_fails_is_named(small, tmp_path, capsys):
    """A cluster that is started for this launch; the other run ends."""
    trainings = {tmp_path / f"seed{seed}": small(seed=seed) for seed in range(2)}
    failing = tmp_path / "seed1"
    failing.mkdir()
    (failing / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=f"^{failing} failed; the same command"):
        run_on_ray(trainings, "local")
    assert f"failed: {failing} ({failing} exists; choose another --out" in capsys.readouterr().err
    assert (tmp_path / "seed0" / runs.RESULT).exists()
    with pytest.raises(ValueError, match="--threads 999 is more than a node of the Ray cluster has"):
        run_on_ray({tmp_path / "seed2": small(threads=999)}, "local")


def test_a_cluster_that_does_not_answer_is_named(small, tmp_path):
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:1"):
        run_on_ray({tmp_path / "run": small()}, "127.0.0.1:1")
