"""Time to the solved task: what counts, and a run that is interrupted, continued and reused."""

import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from agents import runs
from agents.benchmark import solved as definition
from agents.benchmark.__main__ import main
from agents.benchmark.machine import BUSY, Occupation, remark
from agents.benchmark.solved import read_run, solved, summarise
from agents.runs.log import read_progress
from tests.agents.one_line import one_line

ROOT = Path(__file__).parents[3]
STEPS = 150


def test_two_consecutive_evaluations_count():
    """All sequences of six evaluations below, at and above the threshold, with other rows between them."""
    for rates in itertools.product((0.5, 0.9, 1.0), repeat=6):
        rows = []
        for index, rate in enumerate(rates):
            rows += [{"step": 10.0 * index + 5, "time/fps": 1.0}]
            rows += [{"step": 10.0 * index + 10, "eval/success_rate": rate, "eval/seconds": 1.5 * index}]
        pairs = [second for second in range(1, 6) if min(rates[second - 1 : second + 1]) >= 0.9]
        expected = (10 * pairs[0] + 10, 1.5 * pairs[0]) if pairs else None
        assert solved(rows, 0.9) == expected
    assert solved([], 0.9) is None


def seed(seconds, steps, rate=1.0, mean_steps=30.0):
    taken = {"success_rate": rate, "mean_steps": mean_steps, "environment_steps": 100, "seconds": 10.0}
    return {"solved_seconds": seconds, "solved_steps": steps, **taken, "shares": {"learner/updating": rate / 2}}


@pytest.mark.parametrize(
    "seconds, median, worst, share",
    [
        ((3.0, 1.0, 2.0), 2.0, 3.0, 1.0),
        ((3.0, None, 2.0), 3.0, None, 2 / 3),
        ((None, None, 2.0), None, None, 1 / 3),
        ((1.0, 3.0, None, None), None, None, 0.5),
        ((1.0, 3.0, 5.0, None), 4.0, None, 0.75),
    ],
)
def test_a_seed_that_never_solved_took_infinitely_long(seconds, median, worst, share):
    found = summarise([seed(s, s and int(10 * s)) for s in seconds])
    assert (found["median_seconds"], found["worst_seconds"], found["solved"]) == (median, worst, share)
    assert (found["median_steps"], found["worst_steps"]) == (median and 10 * median, worst and 10 * worst)
    json.dumps(found, allow_nan=False)


def test_the_final_policies_of_all_seeds_count():
    found = summarise([seed(1.0, 10, 1.0, 20.0), seed(2.0, 20, 0.5, 30.0), seed(None, None, 0.0, None)])
    assert found["success_rate"] == pytest.approx(0.5) and found["worst_success_rate"] == 0.0
    assert found["mean_steps"] == 25.0 and found["shares"] == {"learner/updating": pytest.approx(0.25)}


def test_other_processes_are_those_that_are_not_this_one_nor_its_finished_children():
    """Beside a process that computes, while this one and a child do too; whatever else the machine does."""
    burn = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
    other = subprocess.Popen([sys.executable, "-c", burn.format(30)])
    try:
        time.sleep(0.3)
        of_other, busy, own = psutil.Process(other.pid).cpu_times(), _busy_seconds(), sum(os.times()[:4])
        occupation, start = Occupation(), time.perf_counter()
        subprocess.run([sys.executable, "-c", burn.format(0.7)], check=True)
        exec(burn.format(0.7))
        others, elapsed = occupation.others(), time.perf_counter() - start
        expected = (_busy_seconds() - busy - sum(os.times()[:4]) + own) / elapsed
        used = (psutil.Process(other.pid).cpu_times().user - of_other.user) / elapsed
    finally:
        other.kill()
        other.wait()
    assert others == pytest.approx(expected, abs=0.15) and others > 0.7 * used > 0


def _busy_seconds():
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq + times.steal


def test_a_busy_machine_is_named_in_one_line():
    assert remark() == remark(0.0) == remark(BUSY / 2, 0.0) == ""
    assert remark(0.1, 1.26).startswith("the machine was busy: other processes used up to 1.3 of ")
    assert "used 0.5 of" in remark(0.5) and "\n" not in remark(0.5)


@pytest.fixture(scope="module")
def settings(files):
    """Extra arguments of a short training."""
    words = f"--steps {STEPS} --evaluation.every 50 --evaluation.episodes 1 --evaluation.final-episodes 1"
    words += " --learner.learning-starts 40 --learner.batch-size 16 --learner.net-arch 32 32 --parallel off"
    paths = ["--estimator", files["state"], "--demonstrations", files["demonstrations"]]
    return [*words.split(), *map(str, paths)]


@pytest.fixture(scope="module")
def measured(settings, tmp_path_factory):
    """What the command printed when it was interrupted in the first run, and when it was started again."""
    out = tmp_path_factory.mktemp("measured") / "solve"
    command = [sys.executable, "-m", "agents.benchmark", "--solve", "--obs", "state", "--seeds", "2", "--out", str(out)]
    command += ["--json", "--", *settings]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=out.parent, env=environment, start_new_session=True, **pipes) as process:
        log = directory(out, 0) / "progress.csv"
        until = time.monotonic() + 120
        while not log.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        first = process.communicate(timeout=120), process.returncode
    stopped = not (directory(out, 0) / runs.RESULT).exists()
    second = subprocess.run(command, cwd=out.parent, env=environment, capture_output=True, text=True, check=False)
    return out, first, stopped, second


def directory(out, number):
    return out / f"push-slot-1-state-buffer+potential+annealing+guide-seed{number}"


def again(out, settings, *arguments):
    main(["--solve", "--obs", "state", "--seeds", "2", "--out", str(out), *arguments, "--", *settings])


@pytest.mark.slow
def test_an_interrupted_measurement_goes_on(measured):
    out, ((said, error), status), stopped, second = measured
    assert status == 130 and stopped and not said and error.splitlines()[-1] == "interrupted"
    assert second.returncode == 0, second.stderr
    assert f"running -m agents.train --resume {directory(out, 0)}" in second.stderr
    found = json.loads(second.stdout)
    assert found == json.loads((out / "results.json").read_text())
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    for number, run in enumerate(found["runs"]):
        result = runs.read_result(directory(out, number))
        assert run["environment_steps"] == result["environment_steps"] == STEPS
        seconds = [
            row["eval/seconds"]
            for row in read_progress(directory(out, number) / "progress.csv")
            if "eval/seconds" in row
        ]
        assert seconds == run["curve"]["seconds"] == sorted(seconds)
        assert seconds[0] > 0 and seconds[-1] <= result["seconds"] + 0.05
        assert run["others"] >= 0 and sum(run["shares"].values()) == pytest.approx(2.0)
    assert (out / "curves.png").stat().st_size > 1000


@pytest.mark.slow
def test_finished_runs_are_reused(measured, settings, monkeypatch, capfd):
    """With a threshold that every evaluation reaches, the second one counts."""
    monkeypatch.setitem(definition.THRESHOLDS, "state", 0.0)
    out = measured[0]
    again(out, settings)
    said = capfd.readouterr()
    assert "running" not in said.err and "100% of 2" in said.out and "time of the collector" in said.out
    found = [read_run(directory(out, number)) for number in range(2)]
    for run in found:
        assert (run["solved_steps"], run["solved_seconds"]) == (run["curve"]["steps"][1], run["curve"]["seconds"][1])
    assert f"{np.median([run['solved_seconds'] for run in found]):.0f} s" in said.out
    summary = json.loads((out / "results.json").read_text())["observations"]["state"]
    assert math.isclose(summary["worst_seconds"], max(run["solved_seconds"] for run in found))


@pytest.mark.slow
def test_runs_of_other_settings_are_refused(measured, settings, capsys):
    arguments = ["--solve", "--obs", "state", "--seeds", "1", "--out", str(measured[0]), "--", *settings]
    error = one_line(main, [*arguments, "--learner.gamma", "0.98"], capsys)
    assert f"{directory(measured[0], 0)} was trained with other settings: learner.gamma 0.99 (0.98)" in error


@pytest.mark.slow
@pytest.mark.parametrize("name, content", [("others.txt", "much\n"), ("progress.csv", None)])
def test_a_damaged_run_is_named(measured, settings, name, content, tmp_path, capsys):
    out = shutil.copytree(measured[0], tmp_path / "solve")
    path = directory(out, 1) / name
    path.write_text(path.read_text().replace("eval/seconds", "eval/other") if content is None else content)
    arguments = ["--solve", "--obs", "state", "--seeds", "2", "--out", str(out), "--", *settings]
    assert str(path) in one_line(main, arguments, capsys)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ("--seeds 0", "--seeds is 0"),
        ("-- --seed 3", "--seed after --"),
        ("-- --out a", "--out after --"),
        ("-- --grids 2", "--grids after --"),
        ("-- --stop-at-success 0.9", "--stop-at-success after --"),
        ("-- --learner.tau 2", "--learner.tau is 2"),
        ("-- --method magic", "unknown method"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert said in one_line(main, ["--solve", *arguments.split()], capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_training_that_fails_is_named_after_the_others(settings, tmp_path, capfd):
    """The first run's directory is in the way."""
    broken = directory(tmp_path, 0)
    broken.mkdir()
    (broken / "notes.txt").write_text("mine")
    with pytest.raises(SystemExit) as stop:
        again(tmp_path, settings)
    error = capfd.readouterr().err
    assert stop.value.code == 2 and f"failed with status 2: {broken}" in error
    assert error.splitlines()[-1] == f"error: {broken} failed; the same command tries again what is missing"
    assert (directory(tmp_path, 1) / runs.RESULT).exists() and (broken / "notes.txt").read_text() == "mine"
