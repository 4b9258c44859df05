"""The recorder's command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from envs import record as module
from envs.demonstrations import load_demonstrations
from envs.push.make import make_push
from envs.record import demonstrate

ROOT = Path(__file__).parents[2]


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["envs.record", *map(str, arguments)])
    module.main()


def test_records_one_demonstration_for_each_grid(tmp_path, monkeypatch, capsys):
    out = tmp_path / "two.hdf5"
    run(monkeypatch, "--grids", 2, "--out", out, "--seed", 40)
    demonstrations = load_demonstrations(out, obs="state")
    assert [t.grid for t in demonstrations] == [0, 1]
    assert all(set(t.observations) == {"state", "puck_pose"} and t.actions is not None for t in demonstrations)
    with h5py.File(out) as file:
        made = json.loads(file["data"].attrs["env_args"])
        assert made["env_name"] == "PushSlot" and made["env_kwargs"]["grids"] == 2
        assert [len(file[f"data/demo_{i}/states"]) for i in (0, 1)] == [t.horizon for t in demonstrations]
    printed = capsys.readouterr().out
    assert f"{demonstrations[1].horizon} steps" in printed
    assert printed.splitlines()[-1] == f"wrote 2 demonstrations of state to {out}"


def test_records_clouds_without_actions(tmp_path, monkeypatch):
    out = tmp_path / "free.hdf5"
    run(monkeypatch, "--obs", "state", "pointcloud", "--action-free", "--out", out)
    (demonstration,) = load_demonstrations(out, obs="pointcloud")
    assert demonstration.actions is None
    assert demonstration.observations["pointcloud"].shape == (demonstration.horizon + 1, 20, 4)
    with h5py.File(out) as file:
        assert "actions" not in file["data/demo_0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grids", 4], "--grids is 4; it must lie in [1, 3]"),
        (["--episodes", 0], "--episodes is 0"),
        (["--seed", -1], "--seed is -1"),
        (["--puck.friction", 0], "puck: friction is 0.0; it must be a finite number above 0"),
        (["--puck.shape", "box", "--puck.half-width", 0.04], "puck: half_width is 0.04; for a box"),
        (["--task", "push-sloth"], "unknown task 'push-sloth'; known tasks: push-slot, push-plane"),
    ],
)
def test_bad_input_ends_in_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    out = tmp_path / "a.hdf5"
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, *arguments, "--out", out)
    error = capsys.readouterr().err
    assert caught.value.code == 2 and message in error and error.count("\n") == 1
    assert not out.exists()


def test_overwrites_only_when_told(tmp_path, monkeypatch, capsys):
    out = tmp_path / "a.hdf5"
    out.write_text("precious")
    with pytest.raises(SystemExit):
        run(monkeypatch, "--out", out)
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_text() == "precious"
    run(monkeypatch, "--out", out, "--overwrite")
    assert len(load_demonstrations(out)) == 1


def test_needs_neither_graphics_nor_open3d(tmp_path):
    """As a command, where importing Open3D or OpenGL fails; the state alone is recorded."""
    (tmp_path / "block").mkdir()
    for name in ("open3d", "OpenGL"):
        (tmp_path / "block" / f"{name}.py").write_text("raise ImportError('blocked')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'block'}:{ROOT}", "MUJOCO_GL": "disable"}
    command = [sys.executable, "-m", "envs.record", "--out", tmp_path / "a.hdf5"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    refused = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert refused.returncode == 2 and refused.stdout == ""
    assert len(refused.stderr.splitlines()) == 1 and "a.hdf5" in refused.stderr


def test_demonstrations_do_not_depend_on_the_number_of_threads(tmp_path):
    """More BLAS threads round otherwise, and contacts turn that into centimetres."""
    environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
    recorded = []
    for name, threads in (("many", {}), ("one", {"OMP_NUM_THREADS": "1"})):
        out = tmp_path / f"{name}.hdf5"
        command = [sys.executable, "-m", "envs.record", "--out", out]
        subprocess.run(command, cwd=ROOT, env=environment | threads, check=True, timeout=300)
        recorded.append(load_demonstrations(out)[0])
    np.testing.assert_array_equal(recorded[0].observations["state"], recorded[1].observations["state"])


def test_a_cloud_of_a_hidden_puck_is_not_demonstrated():
    """The arm hides it at this start, and the points are the end effector's."""
    env = make_push("push-slot", obs="pointcloud", success_speed=0.02)
    assert not env.reset(seed=50)[1]["puck_visible"]
    assert demonstrate(env, seed=50, clouds=True) is None
    assert demonstrate(env, seed=51, clouds=True) is not None
    env.close()
