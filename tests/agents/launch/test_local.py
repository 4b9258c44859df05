"""Local processes: their budget of threads, their output and the time left; the processes are short scripts."""

import sys
import time

import pytest

from agents.config.train import TrainConfig
from agents.launch.local import output_file, run_locally
from agents.launch.watch import Watch

LOG = """
import pathlib, sys, time
directory = pathlib.Path(sys.argv[1])
directory.mkdir(exist_ok=True)
(directory / "began").write_text(str(time.time()))
time.sleep(0.5)
(directory / "ended").write_text(str(time.time()))
print("said", directory.name)
raise SystemExit(int(sys.argv[2]))
"""


@pytest.fixture
def scripts(monkeypatch):
    """Replace the trainings by a script that takes half a second; that of seed 3 fails."""

    def command(training, directory):
        return [sys.executable, "-c", LOG, str(directory), str(int(training.seed == 3))]

    monkeypatch.setattr("agents.launch.local.start_or_resume", command)


@pytest.mark.parametrize("threads, together", [(1, 2), (2, 1), (5, 1)])
def test_processes_share_a_budget_of_threads(threads, together, scripts, tmp_path):
    """A training that takes more than the budget runs alone."""
    trainings = {tmp_path / f"seed{seed}": TrainConfig(seed=seed, threads=threads) for seed in range(3)}
    run_locally(trainings, 2)
    times = [[float((path / name).read_text()) for name in ("began", "ended")] for path in trainings]
    most = max(sum(began <= at < ended for began, ended in times) for at, _ in times)
    assert most == together


def test_a_failure_is_named_with_its_last_words_and_the_others_go_on(scripts, tmp_path, capfd):
    trainings = {tmp_path / f"seed{seed}": TrainConfig(seed=seed) for seed in (3, 4)}
    with pytest.raises(ValueError, match=f"^{tmp_path / 'seed3'} failed; "):
        run_locally(trainings, 1)
    said = capfd.readouterr()
    assert f"failed with status 1: {tmp_path / 'seed3'} (said seed3)" in said.err
    assert "said seed3" not in said.out
    assert output_file(tmp_path / "seed4").read_text() == "said seed4\n"


def test_a_log_that_cannot_be_written_fails_one_run(scripts, tmp_path, capfd):
    trainings = {tmp_path / f"seed{seed}": TrainConfig(seed=seed) for seed in range(2)}
    (tmp_path / "seed0.log").mkdir()
    with pytest.raises(ValueError, match=f"^{tmp_path / 'seed0'} failed; "):
        run_locally(trainings, 1)
    assert f"failed to start: {tmp_path / 'seed0'}" in capfd.readouterr().err
    assert (tmp_path / "seed1/ended").exists()


def test_the_time_left_follows_from_the_steps_of_all_runs(tmp_path, capsys, monkeypatch):
    """Of 600 steps 100 are done before; then 100 in 100 seconds, so that 400 take 7 minutes more."""
    directories = [tmp_path / f"seed{seed}" for seed in range(2)]
    trainings = {directory: TrainConfig(steps=300) for directory in directories}
    directories[0].mkdir()
    (directories[0] / "progress.csv").write_text("step\n100\n")
    now = time.monotonic()
    clock = iter([now, now + 100.0, now + 100.0])
    monkeypatch.setattr("agents.progress.time.monotonic", lambda: next(clock))
    watch = Watch(trainings)
    (directories[0] / "progress.csv").write_text("step\n100\n200\n")
    watch.look(directories[:1])
    line = "2 trainings: 200/600 steps, 1.0 steps/s, 7 min left, seed0 67%\n"
    assert capsys.readouterr().out == line
    monkeypatch.setattr("agents.progress.time.monotonic", lambda: now + 100.0)
    watch.ended(directories[0])
    watch.look([])
    watch.close()
    assert "300/600 steps" in capsys.readouterr().out
