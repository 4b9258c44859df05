"""A training that stops anywhere and is resumed ends as if it had not stopped."""

import dataclasses
import hashlib
import json
import os
import shutil
import signal
import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import runs
from agents.config.train import EvaluationConfig
from agents.evaluation.episodes import Evaluator
from agents.runs.callbacks import Checkpoint
from agents.runs.log import read_progress
from agents.train import parse, train
from shaping.tensors import read_tensors, write_tensors
from tests.faults.equality import assert_equal, assert_same_end


@pytest.fixture(scope="module")
def ninety(configured):
    """Configure 90 steps with checkpoints at 30 and 60 and an evaluation at 45."""

    def build(out, obs="state", **learner):
        config = configured(out, obs, steps=90, checkpoint_every=30, evaluation=EvaluationConfig(45, 1, 1))
        learner = {"learning_starts": 20, "batch_size": 16} | learner
        return dataclasses.replace(config, learner=dataclasses.replace(config.learner, **learner))

    return build


@pytest.fixture(scope="module")
def runs_of_states(ninety, crash, tmp_path_factory):
    """Run directories of an uninterrupted training, and of one that crashed at step 70."""
    folder = tmp_path_factory.mktemp("runs")
    train(ninety(folder / "whole"))
    crash(ninety(folder / "crashed"), 70)
    return folder


@pytest.fixture
def crashed(runs_of_states, tmp_path):
    return shutil.copytree(runs_of_states / "crashed", tmp_path / "crashed")


def resume(directory, steps=90):
    return train(dataclasses.replace(runs.read_config(directory), resume=directory, steps=steps))


def test_a_crashed_and_resumed_training_ends_like_an_uninterrupted_one(runs_of_states, crashed):
    resume(crashed)
    assert_same_end(runs_of_states / "whole", crashed)
    events = EventAccumulator(str(crashed)).Reload()
    for tag in events.Tags()["scalars"]:
        steps = [event.step for event in events.Scalars(tag)]
        assert steps == sorted(set(steps)), f"{tag}: a step of the curve is shown twice"
    assert [event.step for event in events.Scalars("eval/success_rate")] == [45, 90]
    steps = [row["step"] for row in read_progress(crashed / "progress.csv")]
    assert steps == sorted(set(steps))


def test_the_name_of_the_directory_may_hold_an_equals_sign(crashed):
    """As those that `agents.compare --vary` makes."""
    directory = crashed.rename(crashed.with_name("state-buffer-potential.combine=sum-seed0"))
    for words in (["--resume", str(directory)], [f"--resume={directory}"]):
        assert parse([*words, "--steps", "120"]).resume == directory


def test_the_clock_goes_on(crashed):
    """As if the first 60 steps had taken an hour, whatever the others take."""
    checkpoint = crashed / "checkpoints" / "step-000000060"
    content = read_tensors(checkpoint / "agent.pt")
    content["run"]["clock"]["seconds"] = 3600.0
    write_tensors(checkpoint / "agent.pt", content)
    checksums = json.loads((checkpoint / "manifest.json").read_text())
    checksums["agent.pt"] = hashlib.sha256((checkpoint / "agent.pt").read_bytes()).hexdigest()
    (checkpoint / "manifest.json").write_text(json.dumps(checksums))
    begun = time.monotonic()
    result = resume(crashed)
    last = read_progress(crashed / "progress.csv")[-1]
    for seconds in (last["time/time_elapsed"], last["eval/seconds"]):
        assert 3600 <= round(seconds, 1) <= result["seconds"] <= round(3600 + time.monotonic() - begun, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "obs, learner",
    [
        ("state", {"buffer_size": 40}),  # the ring wraps before and after the crash
        ("pointcloud", {"encoder_training": "frozen"}),
        ("pointcloud", {"encoder_training": "finetuned", "precision": "auto"}),
    ],
    ids=["wrapped ring", "frozen encoder", "trained encoder, bfloat16 where it is fast"],
)
def test_so_does_one_with_a(ninety, crash, tmp_path, obs, learner):
    whole, parts = (ninety(tmp_path / name, obs, **learner) for name in ("whole", "parts"))
    train(whole)
    crash(parts, 70)
    resume(parts.out)
    assert_same_end(whole.out, parts.out)


@pytest.mark.parametrize("method", ["gail", "pwil", "dril", "adril", "bc"])
def test_so_does_a_baseline(ninety, crash, tmp_path, method, monkeypatch):
    monkeypatch.setattr("agents.imitation.dril.ITERATIONS", 50)
    monkeypatch.setattr("agents.imitation.adril.ROUND", 25)
    whole, parts = (dataclasses.replace(ninety(tmp_path / name), method=method) for name in ("whole", "parts"))
    train(whole)
    crash(parts, 70)
    resume(parts.out)
    assert_same_end(whole.out, parts.out)
    assert runs.read_result(whole.out)["demonstrations"] == 1


def test_a_run_that_crashed_before_its_first_checkpoint_begins_anew(runs_of_states, crashed, capsys):
    shutil.rmtree(crashed / "checkpoints")
    resume(crashed)
    assert "has no checkpoint yet; beginning at step 0" in capsys.readouterr().out
    assert_same_end(runs_of_states / "whole", crashed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_between_two_steps(number, ninety, crash, runs_of_states, tmp_path, capsys):
    parts = ninety(tmp_path / "parts")
    crash(parts, 70, lambda: os.kill(os.getpid(), number))
    assert f"stopped at step 70; continue it with --resume {parts.out}" in capsys.readouterr().out
    assert (parts.out / "checkpoints/step-000000070").is_dir()
    resume(parts.out)
    assert_same_end(runs_of_states / "whole", parts.out)


def test_a_signal_ends_an_evaluation_which_the_resumed_run_repeats(
    ninety, runs_of_states, tmp_path, monkeypatch, capsys
):
    """One in the same process, which may take minutes."""
    parts, evaluate = ninety(tmp_path / "parts"), Evaluator.__call__

    def interrupted(evaluator, weights):
        os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(evaluator, weights)

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(Evaluator, "__call__", interrupted)
        train(parts)
    assert f"stopped at step 45; continue it with --resume {parts.out}" in capsys.readouterr().out
    resume(parts.out)
    assert_same_end(runs_of_states / "whole", parts.out)


def test_a_hangup_that_is_ignored_stays_so(tmp_path):
    """As `nohup` starts a process."""
    checkpoint, before = Checkpoint(tmp_path, 10), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with checkpoint.holding_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert not checkpoint.interrupted and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_terminal_that_is_gone_does_not_keep_a_run_from_saving(tmp_path):
    try:
        reader, writer = os.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal: {error}")
    before = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    try:
        with pytest.raises(KeyboardInterrupt), Checkpoint(tmp_path, 10).holding_signals():
            os.close(reader)
            os.kill(os.getpid(), signal.SIGHUP)
            assert os.write(2, b"success 10%") > 0, "as the bar does before the step ends"
    finally:
        os.dup2(before, 2)
        os.close(before)


def test_a_finished_run_takes_more_steps(runs_of_states, ninety, tmp_path):
    """It ends like one of that length, but for what the shorter one logged and evaluated at its end."""
    parts = ninety(tmp_path / "parts")
    train(dataclasses.replace(parts, steps=60))
    assert resume(parts.out)["environment_steps"] == 90
    last = "checkpoints/step-000000090/agent.pt"
    a, b = (read_tensors(directory / last) for directory in (runs_of_states / "whole", parts.out))
    assert_equal(a | {"run": None}, b | {"run": None})


def test_early_success_ends_the_run_also_after_a_resume(ninety, tmp_path):
    quick = dataclasses.replace(ninety(tmp_path / "quick"), stop_at_success=0.0)
    assert train(quick)["environment_steps"] == 45
    assert resume(quick.out)["environment_steps"] == 45


def test_a_finished_run_without_checkpoints_is_left_alone(runs_of_states, tmp_path):
    """As results are kept, or to save space: there is nothing to continue from, and beginning anew would lose it."""
    directory = shutil.copytree(runs_of_states / "whole", tmp_path / "kept")
    shutil.rmtree(directory / "checkpoints")
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != ".lock"}
    with pytest.raises(ValueError, match=f"{directory} has result.json and policy.pt, but no checkpoint"):
        resume(directory, 120)
    assert {path: path.read_bytes() for path in before} == before


def test_the_policy_of_fewer_steps_is_not_taken_for_that_of_a_continued_run(runs_of_states, crash, tmp_path):
    directory = shutil.copytree(runs_of_states / "whole", tmp_path / "longer")
    crash(dataclasses.replace(runs.read_config(directory), resume=directory, steps=120), 100)
    assert not (directory / "policy.pt").exists() and not (directory / "result.json").exists()
