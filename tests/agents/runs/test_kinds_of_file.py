"""Named pipes, devices and directories in the place of a command's files end it with one line."""

import os
import shutil
from pathlib import Path

import pytest

import assets
from agents import runs
from agents.compare import main as compare
from agents.config.file import to_json
from agents.config.train import TrainConfig
from agents.evaluate import main as evaluate
from agents.pretrain import main as pretrain
from agents.prior.config import PretrainConfig
from agents.train import main as train
from envs.record import main as record
from perception.visualize.__main__ import main as visualize
from tests.agents.one_line import one_line

KINDS = ("a named pipe", "a directory", "a device")
STEP = "checkpoints/step-000000030"


@pytest.fixture(scope="module")
def original(configured, crash, tmp_path_factory):
    """A run that stopped at step 35, with a checkpoint at 30."""
    config = configured(tmp_path_factory.mktemp("kinds") / "run", steps=40, checkpoint_every=30)
    crash(config, 35)
    return config.out


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run")


def replace(path: Path, kind: str) -> None:
    """Put something else in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.json", "progress.csv", f"{STEP}/manifest.json", f"{STEP}/agent.pt"])
def test_of_a_run_that_is_resumed(run, name, kind, capsys):
    path = run / name
    replace(path, kind)
    error = one_line(train, ["--resume", str(run)], capsys)
    assert f"{path}: {kind}, not a regular file" in error or f"{run} has no intact checkpoint" in error
    assert (run / STEP).is_dir()


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_checkpoint_s_rows_that_no_manifest_lists(run, kind, capsys):
    path, manifest = run / STEP / "buffer.rewards.npy", run / STEP / "manifest.json"
    lines = manifest.read_text().splitlines(keepends=True)
    manifest.write_text("".join(line for line in lines if path.name not in line))
    replace(path, kind)
    assert f"has no {path.name}" in one_line(train, ["--resume", str(run)], capsys)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.json", "policy.pt", "best.pt", f"{STEP}/manifest.json"])
def test_of_a_run_that_is_evaluated(run, name, kind, capsys):
    (run / "best.pt").unlink(missing_ok=True)
    replace(run / name, kind)
    assert f"{Path(name).name}" in one_line(evaluate, [str(run)], capsys)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.json", "result.json", "progress.csv"])
def test_of_runs_that_are_compared(tmp_path, name, kind, capsys):
    run = tmp_path / "runs" / "push-slot-1-state-buffer-seed0"
    run.mkdir(parents=True)
    (run / "config.json").write_text(to_json(TrainConfig(method="buffer")))
    (run / "result.json").write_text(
        '{"success_rate": 1.0, "mean_steps": 30.0, "environment_steps": 20, "seconds": 1.0}'
    )
    replace(run / name, kind)
    arguments = ["--obs", "state", "--method", "buffer", "--seeds", "1", "--runs", str(run.parent)]
    error = one_line(compare, [*arguments, "--out", str(tmp_path / "out")], capsys)
    assert f"{run / name}: {kind}, not a regular file" in error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["report.md", "report.html", "results.json", "curves.png"])
def test_of_a_report(tmp_path, name, kind, monkeypatch, capsys):
    """Said before the trainings of which it would report."""
    monkeypatch.setattr("agents.compare.launch", lambda *_: pytest.fail("a training was started"))
    (tmp_path / "out").mkdir()
    replace(tmp_path / "out" / name, kind)
    arguments = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert f"{tmp_path / 'out' / name}: {kind}, not a regular file" in one_line(compare, arguments, capsys)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["panel.png", "cloud.ply", "scene.ply", "demonstration.mp4", "potential.png"])
def test_of_pictures(tmp_path, name, kind, capsys):
    replace(tmp_path / name, kind)
    error = one_line(visualize, ["--out", str(tmp_path), "--overwrite"], capsys)
    assert f"{tmp_path / name}: {kind}, not a regular file" in error
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("kind", KINDS)
def test_of_recorded_demonstrations(tmp_path, kind, monkeypatch, capsys):
    monkeypatch.setattr("envs.record.make_push", lambda *_, **__: pytest.fail("an episode was begun"))
    replace(tmp_path / "a.hdf5", kind)
    monkeypatch.setattr("sys.argv", ["envs.record", "--out", str(tmp_path / "a.hdf5"), "--overwrite"])
    error = one_line(lambda _: record(), [], capsys)
    assert f"{tmp_path / 'a.hdf5'}: {kind}, not a regular file" in error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_of_a_video(tmp_path, suffix, kind, capsys):
    path = tmp_path / f"a{suffix}"
    replace(path, kind)
    run = str(assets.path("policies/push-slot-1-state"))
    assert f"{path}: {kind}, not a regular file" in one_line(evaluate, [run, "--video", str(path)], capsys)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flag", ["--estimator", "--demonstrations"])
def test_of_what_is_drawn_or_trained_with(tmp_path, flag, kind, capsys):
    replace(tmp_path / "file", kind)
    out = ["--out", str(tmp_path / "out")]
    for command in (train, visualize):
        error = one_line(command, [flag, str(tmp_path / "file"), *out], capsys)
        assert f"{tmp_path / 'file'}: {kind}, not a regular file" in error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.json", ".lock"])
def test_of_a_pre_training_that_is_resumed(tmp_path, name, kind, capsys):
    partial = tmp_path / "a.partial"
    (partial / "step-000000030").mkdir(parents=True)
    (partial / "config.json").write_text(to_json(PretrainConfig(out=Path("a.pt"))))
    replace(partial / name, kind)
    assert f"{partial / name}: {kind}, not a regular file" in one_line(pretrain, ["--resume", str(partial)], capsys)
    assert [path.name for path in tmp_path.rglob("step-*")] == ["step-000000030"]


def test_of_a_lock(run, capsys):
    (run / ".lock").unlink()
    os.mkfifo(run / ".lock")
    assert f"{run / '.lock'}: a named pipe, not a regular file" in one_line(train, ["--resume", str(run)], capsys)
    assert runs.read_config(run).steps == 40
