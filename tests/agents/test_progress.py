"""How far a training is: a bar on a terminal, plain lines elsewhere."""

import contextlib
import dataclasses
import fcntl
import os
import re
import struct
import termios

import gymnasium as gym
import pytest

from agents.callbacks import Evaluate, Progress
from agents.runlog import read_progress
from agents.train import train


@pytest.fixture
def config(small):
    base = small(steps=60, checkpoint_every=1000)
    return dataclasses.replace(base, learner=dataclasses.replace(base.learner, learning_starts=100))


def test_lines_in_a_file_have_no_control_characters_and_end_with_the_total(config, monkeypatch, capfd):
    monkeypatch.setattr("agents.callbacks.SECONDS_BETWEEN_LINES", 0.02)
    train(config)
    captured = capfd.readouterr()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", captured.out + captured.err)
    lines = [line for line in captured.out.splitlines() if " steps/s" in line]
    counts = [int(re.match(r"(\d+)/60 steps", line)[1]) for line in lines]
    assert counts == sorted(set(counts)) and len(counts) > 1 and counts[-1] == 60


def test_a_terminal_shows_a_bar_that_ends_at_the_total(config, monkeypatch, capsys):
    try:
        reader, writer = os.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal: {error}")
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(writer, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr("sys.stderr", terminal)
        train(config)
    shown = ""
    with contextlib.suppress(OSError):  # how Linux tells the end
        while chunk := os.read(reader, 4096):
            shown += chunk.decode()
    os.close(reader)
    states = [state for state in shown.split("\r") if "60 [" in state]
    assert len(states) > 1 and " 60/60 [" in states[-1]
    assert " steps/s" not in capsys.readouterr().out


def test_an_interrupted_run_shows_where_it_stopped(config, crash, capsys):
    crash(config, 33)
    assert capsys.readouterr().out.splitlines()[-1].startswith("33/60 steps")


def test_a_short_run_logs_a_row_without_any_evaluation_in_it(config):
    evaluation = dataclasses.replace(config.evaluation, every=10**6)
    learner = dataclasses.replace(config.learner, learning_starts=10**6, guided_share=0.0)
    train(dataclasses.replace(config, steps=2000, evaluation=evaluation, learner=learner))
    rows = read_progress(config.out / "progress.csv")
    assert any("rollout/ep_len_mean" in row for row in rows[:-1])
    assert rows[-1]["step"] == 2000 and {"rollout/ep_rew_mean", "eval/success_rate"} <= rows[-1].keys()


def test_without_a_step_nothing_is_shown(tmp_path, capsys):
    Progress(10, Evaluate(gym.make("PushSlot-v0"), 5, 1, tmp_path)).close()
    assert capsys.readouterr().out == ""
