"""How far everything long is: a bar on a terminal, plain lines elsewhere."""

import contextlib
import dataclasses
import fcntl
import os
import re
import struct
import termios
from collections.abc import Iterator

import pytest

from agents.pretrain import main as pretrain
from agents.progress import counted
from agents.runs.callbacks import Progress
from agents.runs.log import read_progress
from agents.train import train

PRETRAIN = "--steps 60 --learner.learning-starts 50 --learner.value-steps 7 --episodes 2 --device cpu"


@pytest.fixture
def config(small):
    base = small(steps=60, checkpoint_every=1000)
    return dataclasses.replace(base, learner=dataclasses.replace(base.learner, learning_starts=100))


@contextlib.contextmanager
def terminal(monkeypatch) -> Iterator[list[str]]:
    """Let standard error be a terminal of 24 × 80; the list gets what was drawn there, one state of a bar each."""
    try:
        reader, writer = os.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal: {error}")
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    states: list[str] = []
    with os.fdopen(writer, "w") as stream, monkeypatch.context() as patched:
        patched.setattr("sys.stderr", stream)
        yield states
    shown = ""
    with contextlib.suppress(OSError):  # how Linux tells the end
        while chunk := os.read(reader, 4096):
            shown += chunk.decode()
    os.close(reader)
    states += re.split(r"[\r\n]+", shown)


def counts(lines: list[str], what: str, total: int, unit: str) -> list[int]:
    """Counts in plain lines of what is counted."""
    found = [re.match(rf"{what}(\d+)/{total} {unit}s, \S+ {unit}s/s, \d+ min left", line) for line in lines]
    return [int(match[1]) for match in found if match]


def test_lines_in_a_file_have_no_control_characters_and_end_with_the_total(config, monkeypatch, capfd):
    monkeypatch.setattr("agents.progress.SECONDS_BETWEEN_LINES", 0.02)
    train(config)
    captured = capfd.readouterr()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", captured.out + captured.err)
    steps = counts(captured.out.splitlines(), "", 60, "step")
    assert steps == sorted(set(steps)) and len(steps) > 1 and steps[-1] == 60


def test_a_terminal_shows_a_bar_that_ends_at_the_total(config, monkeypatch, capsys):
    with terminal(monkeypatch) as states:
        train(config)
    steps = [state for state in states if "60 [" in state and "step" in state]
    assert len(steps) > 1 and " 60/60 [" in steps[-1]
    assert any("evaluation: " in state and "/1 [" in state for state in states), "of the result"
    assert " steps/s" not in capsys.readouterr().out


def test_the_episodes_of_the_result_are_counted(config, monkeypatch, capsys):
    monkeypatch.setattr("agents.progress.SECONDS_BETWEEN_LINES", -1)
    train(dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, final_episodes=3)))
    assert counts(capsys.readouterr().out.splitlines(), "evaluation: ", 3, "episode") == [1, 2, 3]


def test_every_part_of_a_pre_training_is_counted(tmp_path, monkeypatch, capsys):
    """Its report, the fit of the value and the calibration too."""
    monkeypatch.setattr("agents.progress.SECONDS_BETWEEN_LINES", -1)
    with contextlib.suppress(SystemExit):  # so young a prior may reach no goal, of which nothing could be calibrated
        pretrain([*PRETRAIN.split(), "--out", str(tmp_path / "a.pt")])
    lines = capsys.readouterr().out.splitlines()
    assert counts(lines, "", 60, "step") == list(range(1, 61))
    assert counts(lines, "evaluation: ", 50, "episode") == list(range(1, 51))
    assert counts(lines, "value fit: ", 7, "step") == list(range(1, 8))
    assert counts(lines, "calibration: ", 2, "episode") == [1, 2]
    assert sum("60/60 steps, goal policy succeeds in " in line for line in lines) == 1


def test_what_ends_before_the_first_line_is_due_says_nothing(capsys):
    assert list(counted("abc", "letters", "letter")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_a_bar_that_is_left_early_is_closed(monkeypatch):
    with terminal(monkeypatch) as states:
        for letter in counted("abc", "letters", "letter"):
            if letter == "b":
                break
    assert any("letters:" in state and "/3 [" in state for state in states)
    assert not states[-1].strip(), "and cleared"


def test_an_interrupted_run_shows_where_it_stopped(config, crash, capsys):
    crash(config, 33)
    assert capsys.readouterr().out.splitlines()[-1].startswith("33/60 steps")


def test_a_short_run_logs_a_row_without_any_evaluation_in_it(config):
    evaluation = dataclasses.replace(config.evaluation, every=10**6)
    learner = dataclasses.replace(config.learner, learning_starts=10**6)
    train(dataclasses.replace(config, method="potential", steps=2000, evaluation=evaluation, learner=learner))
    rows = read_progress(config.out / "progress.csv")
    assert any("rollout/ep_len_mean" in row for row in rows[:-1])
    assert rows[-1]["step"] == 2000 and {"rollout/ep_rew_mean", "eval/success_rate"} <= rows[-1].keys()


def test_without_a_step_nothing_is_shown(capsys):
    Progress(10, lambda: None).close()
    assert capsys.readouterr().out == ""
