"""Comparisons reuse finished runs and summarise them."""

import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from agents import compare, runs
from agents.compare import main
from agents.config.file import to_json
from agents.config.presets import PRESETS
from agents.config.train import EvaluationConfig, LearnerConfig, TrainConfig
from agents.report.curves import quartiles
from agents.report.outcome import read_outcome
from tests.agents.one_line import one_line

ROOT = Path(__file__).parents[3]


def test_quartiles_are_those_of_the_seeds_at_every_step():
    curves = [(np.array([10, 20]), np.array([level, level])) for level in (0.0, 0.2, 0.4, 0.6, 0.8)]
    axis, (low, median, high) = quartiles(curves, points=21)
    after = axis >= 10
    np.testing.assert_allclose(
        [low[after], median[after], high[after]], np.repeat([[0.2], [0.4], [0.6]], after.sum(), 1)
    )


def test_a_run_that_stopped_early_keeps_its_last_rate():
    axis, (_, median, _) = quartiles([(np.array([10]), np.array([1.0])), (np.array([20]), np.array([1.0]))], points=3)
    assert axis.tolist() == [0, 10, 20] and median[-1] == 1.0
    with pytest.raises(ValueError, match="no evaluation"):
        quartiles([(np.array([]), np.array([]))])


def finished_run(directory, rate, **settings):
    directory.mkdir(parents=True)
    config = dataclasses.replace(TrainConfig(method="buffer", seed=int(directory.name[-1])), **settings)
    result = {"success_rate": rate, "mean_steps": 30.0, "environment_steps": 20, "seconds": 1800.0}
    (directory / "result.json").write_text(json.dumps(result))
    (directory / "config.json").write_text(to_json(config))
    with (directory / "progress.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["step", "eval/success_rate"])
        writer.writeheader()
        writer.writerows([{"step": 10, "eval/success_rate": ""}, {"step": 20, "eval/success_rate": rate}])


def test_finished_runs_are_reused(tmp_path, capsys):
    for seed, rate in enumerate((0.5, 1.0)):
        finished_run(tmp_path / "runs" / f"push-slot-1-state-buffer-seed{seed}", rate)
    arguments = ["--obs", "state", "--method", "buffer", "--seeds", "2"]
    main([*arguments, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    report = (tmp_path / "out" / "report.md").read_text()
    assert "75.0 ± 25.0" in report and "| 1.00 |" in report
    pictures = re.findall(r"!\[[^]]+\]\((.+)\)", report)
    assert len(pictures) == 3 and all((tmp_path / "out" / name).stat().st_size > 1000 for name in pictures)
    printed = capsys.readouterr().out
    assert "running" not in printed and "other settings" not in printed


def run_compare(tmp_path, *arguments, limit="unlimited", **variables):
    finished_run(tmp_path / "runs" / "push-slot-1-state-buffer-seed0", 1.0)
    command = [sys.executable, "-m", "agents.compare", "--obs", "state", "--method", "buffer", "--seeds", "1"]
    command = ["sh", "-c", f'ulimit -S -f {limit}; exec "$@"', "sh", *command, "--runs", "runs", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=300, check=False)


@pytest.mark.parametrize(
    "variables",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["terminal", "locale"],
)
def test_a_report_is_printed_on_any_terminal_and_written_in_utf_8(tmp_path, variables):
    done = run_compare(tmp_path, "--out", "größe", **variables)
    assert done.returncode == 0 and done.stderr == b""
    assert b"| 100.0 ? 0.0 |" in done.stdout
    report = (tmp_path / "größe" / "report.md").read_bytes().decode("utf-8")
    assert "| 100.0 ± 0.0 |" in report
    assert compare.FIGURES in report  # which a terminal does not show
    assert done.stdout.startswith(report.replace(compare.FIGURES, "").encode("ascii", "replace"))


def test_a_report_that_cannot_be_written_is_printed(tmp_path):
    """As on a full disk: no file may hold a byte."""
    done = run_compare(tmp_path, "--out", "out", limit="0")
    assert done.returncode == 2 and "| 100.0 ± 0.0 |".encode() in done.stdout
    assert b"out/report.md" in done.stderr and done.stderr.count(b"\n") == 1


def test_a_run_with_other_settings_is_named(tmp_path, capsys):
    directories = [tmp_path / "runs" / f"push-slot-1-state-buffer-seed{seed}" for seed in range(2)]
    finished_run(directories[0], 1.0)
    finished_run(directories[1], 1.0, learner=LearnerConfig(gamma=0.9), threads=2, steps=50_000)
    arguments = ["--obs", "state", "--method", "buffer", "--seeds", "2", "--out", str(tmp_path / "out")]
    main([*arguments, "--runs", str(tmp_path / "runs")])
    said = f"other settings than those compared:\n\n- {directories[1]}: threads 2 (1), learner.gamma 0.9 (0.99)\n"
    assert said in capsys.readouterr().out and said in (tmp_path / "out" / "report.md").read_text()
    assert str(directories[0]) not in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "damaged"),
        ('{"success_rate": "all"}', "damaged"),
        ("[]", "damaged"),
        ('{"success_rate": 5, "mean_steps": 3, "environment_steps": 2, "seconds": 1}', "damaged"),
    ],
)
def test_a_damaged_result_is_named(tmp_path, text, message, capsys):
    directory = tmp_path / "runs" / "push-slot-1-state-buffer-seed0"
    finished_run(directory, 1.0)
    (directory / "result.json").write_text(text)
    with pytest.raises(SystemExit):
        main(["--obs", "state", "--method", "buffer", "--seeds", "1", "--runs", str(tmp_path / "runs")])
    error = capsys.readouterr().err
    assert f"{directory / 'result.json'} is {message}" in error and error.count("\n") == 1


@pytest.mark.slow
def test_what_is_missing_is_trained(small, tmp_path, capfd):
    """Two runs that were configured, and killed before they began; real trainings, two at a time."""
    directories = [tmp_path / "runs" / f"push-slot-1-state-sparse-seed{seed}" for seed in range(2)]
    for seed, directory in enumerate(directories):
        directory.mkdir(parents=True)
        config = small(out=directory, method="sparse", seed=seed, steps=60, evaluation=EvaluationConfig(30, 1, 2))
        (directory / "config.json").write_text(to_json(config))
    out = tmp_path / "out"
    arguments = ["--obs", "state", "--method", "sparse", "--seeds", "2", "--steps", "60", "--out", str(out)]
    arguments += ["--runs", str(tmp_path / "runs")]
    main(arguments)
    printed, report = capfd.readouterr().out, (out / "report.md").read_text()
    for directory in directories:
        assert f"-m agents.train --resume {directory} --steps 60" in printed
        assert runs.read_result(directory)["environment_steps"] == 60
        found = read_outcome(directory)
        assert found.steps == (30, 60) and 0 < found.minutes[0] < found.minutes[1] and found.others >= 0
    results = json.loads((out / "results.json").read_text())
    expected = [dataclasses.asdict(read_outcome(directory)) for directory in directories]
    assert results == json.loads(json.dumps({"state sparse": expected}))
    assert "| state sparse | 2 |" in report and "other settings than those compared" in report
    main(arguments)
    assert "running" not in capfd.readouterr().out and (out / "report.md").read_text() == report


def test_odd_runs_are_shown_or_named(tmp_path, capsys):
    """Names that are markup elsewhere, and files that the report can do without."""
    for name in ("a$x_{$b|<c>", "_d"):
        finished_run(tmp_path / "runs" / f"{name}-seed0", 0.5)
    (tmp_path / "runs/_d-seed0/revision.txt").write_bytes(b"\xff")
    (tmp_path / "runs/_d-seed0/policy.pt").write_text("junk")
    words = ["--report-only", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    main(words)
    assert "a$x_{$b\\|&lt;c> | 1 |" in capsys.readouterr().out and (tmp_path / "out/report.html").exists()
    assert "--reference magic: no row has this method" in one_line(main, [*words, "--reference", "magic"], capsys)
    (tmp_path / "runs/_d-seed0/progress.csv").write_text("step\n")
    assert f"{tmp_path / 'runs/_d-seed0/progress.csv'} has no evaluation" in one_line(main, words, capsys)


def test_the_commands_of_a_row_are_told_once(tmp_path):
    """Those of the seeds that differ in more than the seed, apart."""
    for seed, steps in enumerate((20, 20, 30)):
        directory = tmp_path / "runs" / f"some-seed{seed}"
        finished_run(directory, 0.5)
        line = {"command": f"python -m agents.train --obs state --seed {seed} --steps {steps}"}
        (directory / "result.json").write_text(json.dumps(runs.read_result(directory) | line))
    main(["--report-only", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    told = "\n".join(f"python -m agents.train --obs state --seed SEED --steps {steps}" for steps in (20, 30))
    assert (tmp_path / "out/report.md").read_text().endswith(f"```bash\n# some\n{told}\n```\n")
    assert f"<pre>{told}</pre>" in (tmp_path / "out/report.html").read_text()


def test_settings_without_trainings_are_refused(tmp_path, capsys):
    words = ["--report-only", "--runs", str(tmp_path), "--", "--learner.tau", "0.1"]
    assert "--report-only trains nothing" in one_line(main, words, capsys)


def test_a_report_of_all_runs_that_are_there(tmp_path, capsys):
    for name, rate in (("a-seed0", 0.5), ("a-seed1", 1.0), ("b-seed0", 0.25)):
        finished_run(tmp_path / "runs" / name, rate)
    (tmp_path / "runs" / "b-seed1").mkdir()  # not finished
    main(["--report-only", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "| a | 2 | 75.0 ± 25.0 | 75.0 [50.0, 100.0] |" in said and "| b | 1 | 25.0 ± 0.0 | 25.0 |" in said
    assert "holds no finished run" in one_line(main, ["--report-only", "--runs", str(tmp_path / "none")], capsys)


def hear_interrupts():
    """Restore what a shell disables in the background: SIGINT would be ignored by every process that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_an_interrupted_comparison_goes_on(files, tmp_path):
    """Interrupted by Ctrl-C in its first run, and by a run whose directory holds something else; then repeated."""
    words = "--steps 150 --parallel 1 -- --evaluation.every 50 --evaluation.episodes 1 --evaluation.final-episodes 1"
    words += " --learner.learning-starts 40 --learner.batch-size 16 --learner.net-arch 32 32 --demonstrations"
    command = [sys.executable, "-m", "agents.compare", "--obs", "state", "--method", "buffer", "--seeds", "2"]
    command += [*words.split(), str(files["demonstrations"])]
    where = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    first, second = (tmp_path / "runs" / runs.run_name(TrainConfig(seed=seed, method="buffer")) for seed in range(2))
    second.mkdir(parents=True)
    (second / "notes.txt").write_text("mine")
    settings = {"text": True, "start_new_session": True, "preexec_fn": hear_interrupts, **where}
    with subprocess.Popen(command, stdout=-1, stderr=-1, **settings) as process:
        until = time.monotonic() + 120
        while not (first / "progress.csv").exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 130 and error.splitlines()[-1] == "interrupted"
    assert not (first / runs.RESULT).exists()
    failed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **where)
    assert failed.returncode == 2 and f"running -m agents.train --resume {first.relative_to(tmp_path)}" in failed.stdout
    said = f"error: {second.relative_to(tmp_path)} failed; the same command tries again what is missing"
    assert failed.stderr.splitlines()[-1] == said and (second / "notes.txt").read_text() == "mine"
    assert (first / runs.RESULT).exists()
    (second / "notes.txt").unlink()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **where)
    assert done.returncode == 0, done.stderr
    assert [read_outcome(run).steps for run in (first, second)] == [(56, 104, 150)] * 2  # ends of blocks of 8
    assert len(json.loads((tmp_path / "comparison" / "results.json").read_text()).popitem()[1]) == 2


def test_a_run_of_fewer_steps_is_continued(tmp_path, capfd):
    """By a real training, which finds no checkpoint in what is only a result."""
    directory = tmp_path / "runs" / "push-slot-1-state-buffer-seed0"
    finished_run(directory, 1.0)
    arguments = ["--obs", "state", "--method", "buffer", "--seeds", "1"]
    with pytest.raises(SystemExit):
        main([*arguments, "--steps", "50000", "--runs", str(tmp_path / "runs")])
    said = capfd.readouterr()
    assert f"-m agents.train --resume {directory} --steps 50000" in said.out
    assert f"{directory} has result.json, but no checkpoint" in said.err
    assert f"failed with status 2: {directory}" in said.err


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    """The trainings are short processes that succeed and fail."""
    directories = [tmp_path / "runs" / f"push-slot-1-state-buffer-seed{seed}" for seed in range(3)]

    def command(training, directory):
        path = tmp_path / str(training.seed)
        return [sys.executable, "-c", "raise SystemExit(3)" if training.seed == 0 else f"open({str(path)!r}, 'w')"]

    monkeypatch.setattr("agents.launch.local.start_or_resume", command)
    arguments = ["--obs", "state", "--method", "buffer", "--parallel", "2"]
    with pytest.raises(SystemExit):
        main([*arguments, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"failed with status 3: {directories[0]}"
    assert said[1].startswith(f"error: {directories[0]} failed; ") and len(said) == 2
    assert (tmp_path / "1").exists() and (tmp_path / "2").exists()
    assert not (tmp_path / "out").exists() and not any(d.exists() for d in directories)


@pytest.mark.parametrize(
    "obs, preset, steps",
    [
        ("state", "default", 20_000),
        ("state", "paper", 200_000),
        ("pointcloud", "paper", 400_000),
    ],
)
def test_a_preset_brings_its_steps(tmp_path, obs, preset, steps, capsys):
    name = f"push-slot-1-{obs}-buffer" + ("" if preset == "default" else f"-{preset}")
    settings = vars(PRESETS[preset][obs]) | {"method": "buffer", "seed": 0}
    finished_run(tmp_path / "runs" / f"{name}-seed0", 1.0, **settings | {"steps": steps})
    arguments = ["--obs", obs, "--method", "buffer", "--seeds", "1", "--preset", preset]
    main([*arguments, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "running" not in printed and "other settings" not in printed
    assert PRESETS[preset][obs].steps == steps
