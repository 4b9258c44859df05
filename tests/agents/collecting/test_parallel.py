"""Collecting and evaluating in processes of their own changes nothing but the time it takes."""

import dataclasses

import pytest

from agents import runs
from agents.collecting.worker import Worker
from agents.runs.callbacks import Evaluate
from agents.runs.log import read_progress
from agents.train import train
from tests.faults.equality import assert_same_end


def evaluations(directory):
    return [int(row["step"]) for row in read_progress(directory / "progress.csv") if "eval/success_rate" in row]


def test_processes_of_their_own_end_with_the_same_weights_transitions_and_rows(build, whole, tmp_path):
    train(build(tmp_path / "run", "on"))
    assert_same_end(whole, tmp_path / "run")


@pytest.mark.parametrize("first, then", [("on", "off"), ("off", "on")])
def test_a_run_that_crashed_goes_on_the_other_way(first, then, build, crash, whole, tmp_path):
    crash(build(tmp_path / "run", first), 70)
    train(dataclasses.replace(runs.read_config(tmp_path / "run"), resume=tmp_path / "run", parallel=then))
    assert runs.read_config(tmp_path / "run").parallel == first
    assert_same_end(whole, tmp_path / "run")


@pytest.mark.slow
def test_so_do_clouds_with_a_moving_discount(build, crash, tmp_path):
    train(build(tmp_path / "whole", "off", "pointcloud"))
    crash(build(tmp_path / "parts", "on", "pointcloud"), 50)
    parts = runs.read_config(tmp_path / "parts")
    train(dataclasses.replace(parts, resume=tmp_path / "parts"))
    assert_same_end(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize("parallel", ["on", "off"])
def test_rows_of_evaluations_are_in_order_and_name_the_step_of_their_policy(parallel, build, whole, tmp_path):
    """Also those that are there blocks later, and those of blocks that do not end at the step asked for."""
    assert evaluations(whole) == [40, 80, 90]
    config = build(tmp_path / "run", parallel)
    train(dataclasses.replace(config, learner=dataclasses.replace(config.learner, block=15, update_ratio=0.2)))
    assert evaluations(tmp_path / "run") == [45, 90]


def test_an_evaluation_that_is_not_there_yet_is_made_after_a_crash(build, crash, whole, tmp_path, monkeypatch):
    """The evaluating process answers so late that a checkpoint is written before."""
    monkeypatch.setattr(Worker, "ready", lambda self: False)
    crash(build(tmp_path / "run", "on"), 65)
    assert not (tmp_path / "run" / "progress.csv").exists(), "a row is written for every evaluation at the latest"
    train(dataclasses.replace(runs.read_config(tmp_path / "run"), resume=tmp_path / "run", parallel="off"))
    assert_same_end(whole, tmp_path / "run")


@pytest.mark.parametrize("parallel", ["on", "off"])
def test_a_training_ends_at_the_first_evaluation_that_is_good_enough(parallel, build, tmp_path):
    quick = build(tmp_path / "run", parallel, stop_at_success=0.0)
    assert train(quick)["environment_steps"] == 40
    assert evaluations(quick.out) == [40]
    assert train(dataclasses.replace(quick, resume=quick.out))["environment_steps"] == 40


@pytest.mark.parametrize("parallel", ["on", "off"])
def test_the_time_is_told_by_what_it_was_spent_on(parallel, build, tmp_path, capsys):
    train(build(tmp_path / "run", parallel))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("time of the ")]
    assert [line.split(":")[0] for line in lines] == ["time of the learner", "time of the collector"]
    for line in lines:
        shares = [int(part.rstrip("%").split()[-1]) for part in line.split(": ")[1].split(", ")]
        assert sum(shares) == pytest.approx(100, abs=5) and min(shares) >= 0
    assert "waiting" in lines[0] and "updating" in lines[0] and "physics" in lines[1]


def test_what_is_left_of_an_evaluation_is_made_up_for_at_the_end(build, whole, tmp_path, monkeypatch):
    """The evaluating process is killed in the last evaluation: training is over, but its result is not there."""
    killed = build(tmp_path / "run", "on")

    with monkeypatch.context() as patched:
        end = Evaluate._on_training_end

        def kill(evaluation):
            worker = evaluation.evaluator
            receive = worker.receive
            patched.setattr(worker, "receive", lambda: worker.process.kill() or receive())
            end(evaluation)

        patched.setattr(Evaluate, "_on_training_end", kill)
        with pytest.raises(OSError, match="the evaluating process ended by SIGKILL; continue it with --resume"):
            train(killed)
    assert 90 not in evaluations(killed.out)
    train(dataclasses.replace(runs.read_config(killed.out), resume=killed.out))
    assert evaluations(killed.out) == [40, 80, 90]
    for name in ("best.pt", "policy.pt"):
        assert (killed.out / name).read_bytes() == (whole / name).read_bytes()
