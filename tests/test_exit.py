"""Commands leave nothing behind at their exit: no exception that Python ignored, and nothing but what they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envs.demonstrations import Trajectory, load_demonstrations, save_demonstrations

ROOT = Path(__file__).parents[1]
POLICY = ROOT / "assets" / "policies" / "push-slot-1-pointcloud"
SHORT = "--learner.learning-starts 30 --learner.batch-size 16"
COMMANDS = {
    "record": "envs.record --obs state pointcloud --out a.hdf5",
    "train": f"agents.train --obs pointcloud --steps 60 {SHORT} --evaluation.final-episodes 1 --out run",
    "evaluate": f"agents.evaluate {POLICY} --episodes 1 --video a.mp4 --video-episodes 1",
    "pretrain": f"agents.pretrain --steps 60 {SHORT} --learner.value-steps 5 --episodes 1 --out a.pt",
    "visualize": "perception.visualize --demonstrations short.hdf5 --out pictures",
    "bad input": "agents.train --demonstrations nowhere.hdf5 --out run",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_said_at_exit(name, tmp_path):
    if name == "visualize":
        whole = load_demonstrations(ROOT / "assets" / "demonstrations" / "push-slot-1.hdf5")[0]
        rows = {key: values[-4:] for key, values in whole.observations.items()}
        save_demonstrations(tmp_path / "short.hdf5", [Trajectory(rows, whole.actions[-3:])], {})
    done = subprocess.run(
        [sys.executable, "-m", *COMMANDS[name].split()],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = done.stdout + done.stderr
    untrained = name == "pretrain" and "reached no goal" in said
    assert done.returncode == (2 if name == "bad input" or untrained else 0), said
    for word in ("Exception ignored", "Traceback", "Warning", "leaked"):
        assert word not in said, said


@pytest.mark.parametrize("module", ["envs.record", "perception.visualize", "agents.train"])
def test_a_reader_may_stop_early(module):
    """As ``--help | head -1`` does."""
    command = [sys.executable, "-m", module, "--help"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert said == "" and process.returncode == 141


@pytest.mark.parametrize(
    "command, closed, code",
    [
        ("perception.visualize --help", ">&-", 0),
        ("agents.benchmark --help", "<&- >&-", 0),
        ("agents.evaluate nowhere", "2>&-", 2),
        ("agents.train --resume nowhere", ">&- 2>&-", 2),
        ("envs.record --out a.hdf5", "<&- >&- 2>&-", 0),
    ],
)
def test_standard_streams_may_be_closed(command, closed, code, tmp_path):
    """As in services; what is printed must not land in a file that got a stream's number."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m {command} {closed}', sys.executable],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code and done.stdout + done.stderr == "", done
    for path in tmp_path.iterdir():
        assert load_demonstrations(path)
