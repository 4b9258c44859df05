"""However one of a training's processes ends: one line, a checkpoint that goes on, and no process that stays."""

import dataclasses
import multiprocessing
import os
import re
import signal
import time

import gymnasium as gym
import numpy as np
import psutil
import pytest

from agents import runs, train
from agents.config.command import command
from agents.runs.callbacks import Progress
from agents.runs.checkpoint import list_checkpoints
from agents.tasks import make_env
from shaping.tensors import read_tensors
from tests.faults.commands import CONTEXT
from tests.faults.equality import assert_equal, assert_same_end


def words(config):
    return [*command(config).split()[3:], "--out", str(config.out), "--parallel", config.parallel]


def stopped(config, capsys, at=None, act=None):
    """Train until it stops, do something in a step, and return the status and what was said."""
    with pytest.MonkeyPatch.context() as patched:
        if act is not None:
            patched.setattr(
                Progress, "_on_step", lambda progress: progress.num_timesteps != at or act(progress) or True
            )
        with pytest.raises(SystemExit) as stop:
            train.main(words(config))
    assert not multiprocessing.active_children()
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def resume(directory, parallel="on"):
    train.train(dataclasses.replace(runs.read_config(directory), resume=directory, parallel=parallel))


def last_step(directory):
    return list_checkpoints(directory / runs.CHECKPOINTS)[-1].name


def kill_collector(progress):
    progress.model.collected.caller.process.kill()


def terminate_collector(progress):
    progress.model.collected.caller.process.terminate()


def kill_evaluator(progress):
    (evaluator,) = set(multiprocessing.active_children()) - {progress.model.collected.caller.process}
    evaluator.kill()


@pytest.mark.parametrize(
    "act, process, name, steps",
    [
        (kill_collector, "collecting", "SIGKILL", (45, 50)),
        (terminate_collector, "collecting", "SIGTERM", (45, 50)),
        (kill_evaluator, "evaluating", "SIGKILL", range(40, 95, 5)),
    ],
)
def test_a_process_that_is_killed(act, process, name, steps, build, whole, tmp_path, capsys):
    """At step 43. What was asked before may be answered already, and an end is seen when an answer is waited for."""
    config = build(tmp_path / "run")
    code, _, error = stopped(config, capsys, 43, act)
    advice = f"continue it with --resume {config.out}"
    assert (code, error) == (2, f"error: the {process} process ended by {name}; {advice}\n")
    assert last_step(config.out) in [f"step-{step:09d}" for step in steps]
    resume(config.out)
    assert_same_end(whole, config.out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_of_the_terminal_to_another_process_is_for_the_learner(number, build, whole, tmp_path):
    config = build(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patched:

        def tell(progress):
            if progress.num_timesteps == 43:
                for process in multiprocessing.active_children():
                    os.kill(process.pid, number)
            return True

        patched.setattr(Progress, "_on_step", tell)
        train.train(config)
    assert_same_end(whole, config.out)


class Failing(gym.Wrapper):
    """An environment that raises in its 43rd step."""

    def __init__(self, env, error):
        super().__init__(env)
        self.error, self.steps = error, 0

    def step(self, action):
        self.steps += 1
        if self.steps == 43:
            raise self.error
        return self.env.step(action)


class Odd(Exception):
    """An error that is pickled, but not made again."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def break_env(monkeypatch, error, role):
    """Let the environment of the training fail, or that of the evaluations."""
    made = []

    def make(config):
        made.append(make_env(config))
        return Failing(made[-1], error) if len(made) == role else made[-1]

    monkeypatch.setattr(train, "make_env", make)


@pytest.mark.parametrize("parallel", ["on", "off"])
@pytest.mark.parametrize("role, step", [(1, 40), (2, 40)], ids=["training", "evaluation"])
def test_an_error_in_an_environment_that_a_user_can_mend(parallel, role, step, build, whole, tmp_path, capsys):
    config = build(tmp_path / "run", parallel)
    with pytest.MonkeyPatch.context() as patched:
        break_env(patched, ValueError("the drawer is empty"), role)
        code, _, error = stopped(config, capsys)
    assert (code, error) == (2, "error: the drawer is empty\n")
    found = int(last_step(config.out).removeprefix("step-"))
    assert found == step or (role == 2 and parallel == "on" and step < found <= 90), "an evaluation may fail later"
    resume(config.out, parallel)
    assert_same_end(whole, config.out)


@pytest.mark.parametrize("parallel", ["on", "off"])
def test_any_other_error_comes_with_the_traceback_of_its_process(parallel, build, tmp_path, monkeypatch):
    config = build(tmp_path / "run", parallel)
    break_env(monkeypatch, KeyError("drawer"), 1)
    with pytest.raises(KeyError, match="drawer") as raised:
        train.main(words(config))
    assert not multiprocessing.active_children() and last_step(config.out) == "step-000000040"
    shown = str(raised.value.__cause__) if parallel == "on" else str(raised.traceback)
    assert "raise self.error" in shown or "test_processes.py" in shown


def test_an_error_that_cannot_be_brought_here_is_named(build, tmp_path, monkeypatch):
    config = build(tmp_path / "run")
    break_env(monkeypatch, Odd("no", "drawer"), 1)
    with pytest.raises(RuntimeError, match="Odd: no drawer") as raised:
        train.main(words(config))
    assert "raise self.error" in str(raised.value.__cause__) and last_step(config.out) == "step-000000040"


class NotFinite(gym.Wrapper):
    """An environment whose 43rd reward is no number."""

    steps = 0

    def step(self, action):
        self.steps += 1
        observation, reward, *others = self.env.step(action)
        return observation, np.nan if self.steps == 43 else reward, *others


@pytest.mark.parametrize("parallel", ["on", "off"])
def test_a_number_that_is_not_finite(parallel, build, whole, tmp_path, capsys):
    config = build(tmp_path / "run", parallel)
    made = []

    def make(settings):
        made.append(make_env(settings))
        return made[-1] if len(made) > 1 else NotFinite(made[-1])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(train, "make_env", make)
        code, _, error = stopped(config, capsys)
    assert code == 2 and error.startswith("error: reward is nan in step 43, episode 1 of the training; ")
    assert error.count("\n") == 1 and len(list(config.out.glob("not-finite-*.npz"))) == 1
    assert last_step(config.out) == "step-000000040"
    resume(config.out, parallel)
    assert_same_end(whole, config.out)


def _train_in_a_group(arguments, log):
    os.setsid()
    for descriptor in (1, 2):
        os.dup2(os.open(log / str(descriptor), os.O_WRONLY | os.O_CREAT), descriptor)
    train.main(arguments)


def begin(config, log):
    """Train in a process group of its own; return it and the processes beside it once a checkpoint is there."""
    log.mkdir()
    process = CONTEXT.Process(target=_train_in_a_group, args=(words(config), log))
    process.start()
    deadline = time.monotonic() + 120
    while not list_checkpoints(config.out / runs.CHECKPOINTS) and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    return process, psutil.Process(process.pid).children()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_saves(number, build, tmp_path):
    config = build(tmp_path / "run", steps=3000)
    process, beside = begin(config, tmp_path / "log")
    os.killpg(process.pid, number)
    process.join(60)
    out, error = ((tmp_path / "log" / name).read_text() for name in "12")
    assert (process.exitcode, error) == (130, "")
    step = re.search(rf"stopped at step (\d+); continue it with --resume {config.out}\n", out)
    assert step and last_step(config.out) == f"step-{int(step[1]):09d}" and int(step[1]) > 30
    assert len(beside) == 2 and not psutil.wait_procs(beside, 10)[1]
    end = int(step[1]) + 10
    train.train(dataclasses.replace(runs.read_config(config.out), resume=config.out, steps=end))
    train.train(dataclasses.replace(config, out=tmp_path / "whole", steps=end))
    # not Python's random state: beartype, which checks this process alone, draws of it
    ends = [list_checkpoints(run / runs.CHECKPOINTS)[-1] / "agent.pt" for run in (tmp_path / "whole", config.out)]
    whole, resumed = (read_tensors(path) | {"random": None, "run": None} for path in ends)
    for state in (whole, resumed):
        del state["collected"]["collector"]["random"]["python"]
    assert_equal(whole, resumed)


@pytest.mark.slow
def test_processes_end_with_a_learner_that_is_killed(build, tmp_path):
    config = build(tmp_path / "run", steps=3000)
    process, beside = begin(config, tmp_path / "log")
    process.kill()
    process.join(60)
    assert len(beside) == 2 and not psutil.wait_procs(beside, 10)[1]
    assert (tmp_path / "log" / "2").read_text() == ""
    resume_to = int(last_step(config.out).removeprefix("step-")) + 10
    train.train(dataclasses.replace(runs.read_config(config.out), resume=config.out, steps=resume_to))
