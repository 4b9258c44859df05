"""Weights & Biases and MLflow receive what a run logs, also after it is resumed; both libraries write real files."""

import dataclasses
import json
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

from agents.runs.log import read_progress
from agents.runs.tracking import TRACKERS
from agents.train import train

# Each training has a process of its own, because the trackers leave threads and processes behind.
CODE = """
import dataclasses, pickle, sys
from agents.train import train
train(pickle.load(sys.stdin.buffer))
"""


def run(config, place, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        input=pickle.dumps(config),
        cwd=place,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def wandb_records(content):
    """Yield the records of an offline file: LevelDB's log format in blocks of 32 KiB after a header of 7 bytes."""
    record, place = b"", 7
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, size, kind = struct.unpack("<IHB", content[place : place + 7])
        record += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or last part
            yield record
            record = b""


def wandb_history(directory):
    """Return the logged rows of all offline files."""
    from wandb.proto import wandb_internal_pb2

    rows = []
    for path in directory.glob("wandb/offline-run-*/*.wandb"):
        for content in wandb_records(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(content)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({item.key or item.nested_key[0]: json.loads(item.value_json) for item in items})
    return rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow's dependencies
def test_trackers_receive_the_log_of_a_resumed_run(small, tmp_path, monkeypatch):
    config = small(track=("wandb", "mlflow"), steps=200)
    run(config, tmp_path, monkeypatch)
    run(dataclasses.replace(config, resume=config.out, steps=300), tmp_path, monkeypatch)
    logged = read_progress(config.out / "progress.csv")
    identifiers = json.loads((config.out / "tracking.json").read_text())
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    tracked = client.get_run(identifiers["mlflow"])
    assert tracked.data.params["learner.batch_size"] == "32" and tracked.info.status == "FINISHED"
    for name in ("eval/success_rate", "train/critic_loss", "rollout/ep_len_mean"):
        expected = [(row["step"], row[name]) for row in logged if name in row]
        assert expected
        found = client.get_metric_history(identifiers["mlflow"], name)
        np.testing.assert_allclose(sorted({(metric.step, metric.value) for metric in found}), expected, rtol=1e-6)
        rows = {(row["step"], row[name]) for row in wandb_history(config.out) if name in row}
        np.testing.assert_allclose(sorted(rows), expected, rtol=1e-6)
    assert len(list((config.out / "wandb").glob(f"offline-run-*-{identifiers['wandb']}"))) == 2


def test_a_tracker_that_is_not_installed_is_named(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"--track wandb needs an extra: pip install 'pushcloud\[tracking\]'"):
        train(small(track=("wandb",)))


@pytest.mark.filterwarnings("ignore")
def test_a_store_that_mlflow_refuses_is_named(small, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "gopher://nowhere")
    with pytest.raises(ValueError, match=r"--track mlflow: .*set MLFLOW_TRACKING_URI"):
        train(small(track=("mlflow",)))


@pytest.mark.parametrize("text", ["{", "[]", '{"wandb": 5}'])
def test_damaged_identifiers_are_named(text, small, tmp_path):
    config = small(track=("wandb",))
    config.out.mkdir()
    (config.out / "tracking.json").write_text(text)
    with pytest.raises(ValueError, match=r"tracking.json is damaged \(.*\); move it away"):
        TRACKERS["wandb"](config.out, {})


def test_a_tracker_that_fails_does_not_stop_the_training(tmp_path, monkeypatch, capsys):
    """The server does not answer; it is named once."""
    for name, value in {"MAX_RETRIES": "0", "TIMEOUT": "1"}.items():
        monkeypatch.setenv(f"MLFLOW_HTTP_REQUEST_{name}", value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    tracker = TRACKERS["mlflow"](tmp_path, {})
    for step in range(2):
        tracker.write({"a": 1.0}, {}, step)
    tracker.close()
    said = capsys.readouterr().out
    assert said.count("--track mlflow failed, and the training goes on without it: ") == 1
