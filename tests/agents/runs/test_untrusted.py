"""Files from somebody else are only data: nothing in them is executed, nothing elsewhere is written."""

import hashlib
import io
import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest
import torch

from agents import runs
from agents.config.file import to_json
from agents.config.train import TrainConfig
from agents.evaluate import main as evaluate
from agents.methods.shaped_sac import make_agent
from agents.runs.checkpoint import list_checkpoints, load_checkpoint, verify
from agents.tasks import make_env
from agents.train import main as resume
from shaping.tensors import write_tensors
from shaping.value import ValueEstimator


class Payload:
    """Unpickling it makes a directory."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def trap(tmp_path):
    """A path that exists if code from a file was executed."""
    path = tmp_path / "executed"
    yield path
    assert not path.exists(), "a file was executed"


def hostile_files(trap):
    stream = io.BytesIO()
    torch.save({"actor.mu.weight": Payload(trap)}, stream)
    yield "torch", stream.getvalue()
    yield "pickle", pickle.dumps(Payload(trap))
    stream = io.BytesIO()
    np.savez(stream, weights=np.array([Payload(trap)], dtype=object))
    yield "npz", stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(f"../../../..{trap}", "escaped")
        archive.writestr("archive/data.pkl", pickle.dumps(Payload(trap)))
    yield "escape", stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(50_000_000))
    yield "bomb", stream.getvalue()
    yield "empty", b""
    yield "text", b"not a policy"


def test_hostile_policies_and_estimators_are_refused_in_one_line(tmp_path, trap):
    (tmp_path / "config.json").write_text(to_json(TrainConfig()))
    path = tmp_path / "policy.pt"
    for name, content in hostile_files(trap):
        path.write_bytes(content)
        for load in (runs.load_policy, ValueEstimator.load):
            with pytest.raises(ValueError, match=r"policy\.pt") as refused:
                load(path)
            assert "\n" not in str(refused.value), name
        assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "policy.pt"]


def test_tensors_of_other_shapes_or_kinds_are_refused(tmp_path, config, model):
    (tmp_path / "config.json").write_text(to_json(config))
    policy = runs.policy_weights(model.actor)
    huge = torch.zeros(1).expand(10**12)  # little in the file, much in memory
    for changed in ({"actor.mu.bias": huge}, {"actor.mu.bias": "text"}, {"actor.mu.bias": torch.zeros(3)}):
        write_tensors(tmp_path / "policy.pt", policy | changed)
        with pytest.raises(ValueError, match=r"weights do not fit .*actor\.mu\.bias"):
            runs.load_policy(tmp_path)
    for content in ({}, {"policy": 1}, {"policy": []}):
        write_tensors(tmp_path / "policy.pt", content)
        with pytest.raises(ValueError, match="weights do not fit"):
            runs.load_policy(tmp_path)
    write_tensors(tmp_path / "policy.pt", policy | {"actor.mu.bias": torch.full((2,), torch.nan)})
    with pytest.raises(ValueError, match=r"weight actor\.mu\.bias is not finite"):
        runs.load_policy(tmp_path)


@pytest.fixture(scope="module")
def config(configured, crash, tmp_path_factory):
    """A run that stopped at step 35, with a checkpoint at 30."""
    config = configured(tmp_path_factory.mktemp("files") / "run", steps=40, checkpoint_every=30)
    crash(config, 35)
    return config


@pytest.fixture(scope="module")
def model(config):
    return make_agent(config, make_env(config))


@pytest.fixture
def run(config, tmp_path):
    return shutil.copytree(config.out, tmp_path / "run")


def one_line(command, arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        command(arguments)
    captured = capsys.readouterr()
    assert stop.value.code == 2 and captured.err.count("\n") == 1, captured.err
    return captured.err


def rewrite(checkpoint, name, content):
    """Put a file into a checkpoint, with a checksum that fits."""
    (checkpoint / name).write_bytes(content)
    checksums = json.loads((checkpoint / "manifest.json").read_text())
    checksums[name] = hashlib.sha256(content).hexdigest()
    (checkpoint / "manifest.json").write_text(json.dumps(checksums))
    verify(checkpoint)


def test_hostile_checkpoints_are_refused_in_one_line(run, model, trap, capsys):
    (checkpoint,) = list_checkpoints(run / runs.CHECKPOINTS)
    agent = (checkpoint / "agent.pt").read_bytes()
    for _, content in hostile_files(trap):
        rewrite(checkpoint, "agent.pt", content)
        with pytest.raises(ValueError, match=f"^{checkpoint} does not belong to this configuration: .*$"):
            load_checkpoint(model, checkpoint)
        assert str(checkpoint) in one_line(evaluate, [str(checkpoint)], capsys)
    assert str(checkpoint) in one_line(resume, ["--resume", str(run)], capsys)
    rewrite(checkpoint, "agent.pt", agent)
    pickled, huge = io.BytesIO(), io.BytesIO()
    np.save(pickled, np.array([Payload(trap)] * 30, dtype=object), allow_pickle=True)
    header = {"descr": "<f4", "fortran_order": False, "shape": (10**13, 1)}
    np.lib.format.write_array_header_1_0(huge, header)
    for stream in (pickled, huge):
        rewrite(checkpoint, "buffer.rewards.npy", stream.getvalue())
        with pytest.raises(ValueError, match=f"^{checkpoint} does not belong to this configuration: .*$"):
            load_checkpoint(model, checkpoint)


@pytest.mark.parametrize("name", [".lock", "progress.csv", "best.pt", "config.json", "checkpoints"])
def test_links_in_a_run_directory_do_not_harm_what_they_lead_to(run, name, tmp_path, capsys):
    victim, link = tmp_path / "victim", run / name
    if name == "config.json":
        shutil.copy(link, victim)
    elif link.is_dir():
        shutil.copytree(link, victim)
    else:
        victim.write_text("step\n1\n")
    before = {path: path.stat().st_mtime_ns for path in (victim, *victim.rglob("*"))}
    if link.is_dir():
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.symlink_to(victim)
    if name in (".lock", "checkpoints"):
        assert name in one_line(resume, ["--resume", str(run)], capsys)
    else:
        resume(["--resume", str(run)])
    assert {path: path.stat().st_mtime_ns for path in (victim, *victim.rglob("*"))} == before


def test_a_moved_run_is_resumed_where_it_lies_now(run, config):
    before = {path: path.stat().st_mtime_ns for path in config.out.rglob("*")}
    resume(["--resume", str(run)])
    assert (run / "result.json").is_file()
    assert {path: path.stat().st_mtime_ns for path in config.out.rglob("*")} == before
