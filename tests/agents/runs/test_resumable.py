"""Only a run without any checkpoint begins anew; advice that is given works."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from agents import runs
from agents.config.file import to_json
from agents.evaluate import main as evaluate
from agents.pretrain import main as pretrain
from agents.prior.config import PretrainConfig
from agents.runs.checkpoint import list_checkpoints
from agents.train import main, train
from tests.agents.one_line import one_line


@pytest.fixture(scope="module")
def original(configured, crash, tmp_path_factory):
    """A run that crashed at step 35, with a checkpoint at 30."""
    config = configured(tmp_path_factory.mktemp("resumable") / "run", steps=40, checkpoint_every=30)
    crash(config, 35)
    return config


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original.out, tmp_path / "run")


def contents(directory):
    return {path: path.read_bytes() if path.is_file() else None for path in directory.rglob("*")}


def move_away(checkpoints):
    checkpoints.rename(checkpoints.with_name("elsewhere"))


def put_a_file(checkpoints):
    move_away(checkpoints)
    checkpoints.write_text("")


def put_a_dangling_link(checkpoints):
    move_away(checkpoints)
    checkpoints.symlink_to("nowhere")


def put_a_link_to_itself(checkpoints):
    move_away(checkpoints)
    checkpoints.symlink_to(checkpoints)


def set_all_aside(checkpoints):
    for path in list_checkpoints(checkpoints):
        path.rename(path.with_name(f"damaged-{path.name}"))


UNUSABLE = (put_a_file, put_a_dangling_link, put_a_link_to_itself, set_all_aside)


@pytest.mark.parametrize("spoil", UNUSABLE, ids=lambda spoil: spoil.__name__)
def test_checkpoints_that_cannot_be_listed_are_not_taken_for_none(run, spoil, capsys):
    spoil(run / runs.CHECKPOINTS)
    before = contents(run)
    error = one_line(main, ["--resume", str(run)], capsys)
    assert str(run / runs.CHECKPOINTS) in error and "start again" not in error
    assert contents(run) == before


@pytest.mark.parametrize("name", [runs.CHECKPOINTS, "manifest.json", "agent.pt"])
def test_what_may_not_be_read_is_not_taken_for_damaged(run, name, monkeypatch, capsys):
    """The administrator, as whom tests may run, may read all: the operating system's refusal is raised here."""
    (checkpoint,) = list_checkpoints(run / runs.CHECKPOINTS)
    refused = run / name if name == runs.CHECKPOINTS else checkpoint / name

    def refuse(function):
        def asked(path, *arguments, **settings):
            if str(path) == str(refused):
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *arguments, **settings)

        return asked

    before = contents(run)
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.open", refuse(Path.open))
        patched.setattr("os.listdir", refuse(os.listdir))
        patched.setattr("os.scandir", refuse(os.scandir))
        for command, arguments in ((main, ["--resume", str(run)]), (evaluate, [str(run)])):
            assert f"Permission denied: '{refused}'" in one_line(command, arguments, capsys)
    assert contents(run) == before


@pytest.mark.parametrize("leave", [shutil.rmtree, lambda c: (shutil.rmtree(c), c.mkdir())], ids=["gone", "empty"])
def test_a_run_that_has_none_begins_anew(run, leave, capsys):
    leave(run / runs.CHECKPOINTS)
    main(["--resume", str(run)])
    assert "has no checkpoint yet; beginning at step 0" in capsys.readouterr().out


def test_a_directory_that_is_gone_is_not_made_again_nor_advised(original, crash, tmp_path, capsys):
    out = tmp_path / "run"
    arguments = ["--resume", str(shutil.copytree(original.out, out))]
    with pytest.MonkeyPatch.context() as patched:
        learn = "agents.runs.callbacks.Checkpoint._on_training_start"
        patched.setattr(learn, lambda self: shutil.rmtree(out))
        error = one_line(main, arguments, capsys)
    assert "it cannot be continued" in error and "--resume" not in error
    assert not out.exists()


def test_a_full_disk_is_answered_with_advice_that_works(run, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device", str(run / "best.pt"))

    with monkeypatch.context() as patched:
        patched.setattr("agents.runs.checkpoint._write", full)
        error = one_line(main, ["--resume", str(run)], capsys)
    advice = re.search(r"continue it with (--resume .*)", error)
    assert "No space left" in error and advice
    main(shlex.split(advice[1]))
    assert (run / runs.RESULT).is_file()


def test_a_directory_that_is_no_run_is_not_advised(original, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="choose another --out") as refused:
        train(type(original)(out=tmp_path))
    assert "--resume" not in str(refused.value)


def test_without_an_intact_checkpoint_a_pre_training_is_left_as_it_is(tmp_path, capsys):
    partial = tmp_path / "a.partial"
    (partial / "step-000000030").mkdir(parents=True)
    error = one_line(pretrain, ["--resume", str(partial)], capsys)
    assert f"{partial} holds no pre-training to resume: it has no config.json" in error and "start again" not in error
    (partial / "config.json").write_text(to_json(PretrainConfig(out=Path("a.pt"))))
    error = one_line(pretrain, ["--resume", str(partial)], capsys)
    assert f"{partial} has no intact checkpoint; put a copy back, or choose another --out" in error
    assert [path.name for path in partial.glob("step-*")] == ["step-000000030"]
