"""Trainings on a real Ray cluster of two nodes on this machine."""

import dataclasses
import threading
import time
from pathlib import Path

import pytest

from agents import runs
from agents.compare import main as compare
from agents.config.train import EvaluationConfig
from agents.launch.ray_cluster import run_on_ray
from agents.runs.log import read_progress
from agents.train import train
from tests.agents.one_line import one_line


@pytest.mark.slow
def test_a_run_whose_node_is_lost_is_resumed_on_the_other(small, tmp_path, monkeypatch, capfd):
    """Two runs on two nodes of one CPU each; one node is lost after both have written a checkpoint.

    The resumed run must end with the numbers of a run that nothing interrupts.
    """
    from ray.cluster_utils import Cluster

    monkeypatch.chdir(tmp_path)
    training = small(steps=800, checkpoint_every=100, evaluation=EvaluationConfig(400, 1, 2))
    trainings = {tmp_path / f"seed{seed}": dataclasses.replace(training, seed=seed) for seed in range(2)}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    errors = []

    def launch():
        try:
            run_on_ray(trainings, cluster.address)
        except Exception as error:
            errors.append(error)

    try:
        lost, _ = (cluster.add_node(num_cpus=1) for _ in range(2))
        launched = threading.Thread(target=launch)
        launched.start()
        until = time.monotonic() + 120
        while not all(list(path.glob("checkpoints/step*")) for path in trainings) and time.monotonic() < until:
            time.sleep(0.05)
        cluster.remove_node(lost, allow_graceful=False)
        assert not any((path / runs.RESULT).exists() for path in trainings)
        launched.join(timeout=180)
        logs = list(Path(cluster.head_node.get_session_dir_path(), "logs").glob("worker-*.out"))
        (interrupted,) = [
            path for path in trainings if any(f"resumed {path} at step" in log.read_text() for log in logs)
        ]
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


def test_a_cluster_that_does_not_answer_is_named(tmp_path, capsys):
    words = ["--obs", "state", "--launcher", "ray", "--address", "127.0.0.1:1", "--runs", str(tmp_path / "runs")]
    assert "127.0.0.1:1" in one_line(compare, [*words, "--out", str(tmp_path / "out")], capsys)
    assert not list(tmp_path.iterdir())
