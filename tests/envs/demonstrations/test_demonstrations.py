"""Files of demonstrations: what goes in comes out, in the layout of robomimic."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from assets import path as asset
from envs.demonstrations import Trajectory, load_demonstrations, save_demonstrations, warn_if_longer
from tests.envs.demonstrations.conftest import trajectory

ROOT = Path(__file__).parents[3]
SHIPPED = {grids: asset("demonstrations", f"push-slot-{grids}.hdf5") for grids in (1, 2, 3)}


def test_round_trip(tmp_path):
    # a dozen, so that demo_10 must not come before demo_2; action-free and one-step ones among them
    written = [trajectory(1 + i, i, actions=i % 2 == 0) for i in range(12)]
    path = tmp_path / "new" / "folder" / "demonstrations.hdf5"
    save_demonstrations(path, written, {"env_name": "PushSlot-v0"})
    read = load_demonstrations(path)
    assert [t.horizon for t in read] == [t.horizon for t in written]
    for a, b in zip(written, read, strict=True):
        assert (a.grid, a.seed) == (b.grid, b.seed)
        assert set(a.observations) == set(b.observations)
        for name, rows in a.observations.items():
            np.testing.assert_array_equal(rows, b.observations[name])
        assert (a.actions is None) == (b.actions is None)
        if a.actions is not None:
            np.testing.assert_array_equal(a.actions, b.actions)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]  # no temporary file is left


@pytest.mark.parametrize("shipped", sorted(ROOT.glob("assets/**/*.hdf5")), ids=lambda path: path.stem)
def test_shipped_files_have_robomimics_layout(shipped):
    """Its SequenceDataset reads `next_obs`, with as many rows as actions."""
    with h5py.File(shipped) as content:
        for demo in content["data"].values():
            assert set(demo["obs"]) == set(demo["next_obs"])
            rows = [*demo["obs"].values(), *demo["next_obs"].values()]
            assert {len(row) for row in rows} == {demo.attrs["num_samples"]}


def test_layout_is_robomimics(file):
    with h5py.File(file) as content:
        assert json.loads(content["data"].attrs["env_args"])["env_name"] == "PushSlot-v0"
        assert content["data"].attrs["total"] == 8
        demo = content["data/demo_1"]
        assert demo.attrs["num_samples"] == 3 == len(demo["actions"])
        assert len(demo["obs/state"]) == len(demo["next_obs/state"]) == 3
        np.testing.assert_array_equal(demo["obs/state"][1:], demo["next_obs/state"][:-1])
        assert demo["dones"][()].tolist() == demo["rewards"][()].tolist() == [0, 0, 1]


def test_states_are_robomimics(tmp_path):
    """One for each action; the last one lies beside them. They are read when asked for."""
    rng = np.random.default_rng(0)
    path = tmp_path / "states.hdf5"
    whole = dataclasses.replace(trajectory(3), states=rng.normal(size=(4, 28)), model_file="<mujoco/>" * 10_000)
    foreign = dataclasses.replace(trajectory(3), states=rng.normal(size=(3, 28)))  # robosuite drops the last
    save_demonstrations(path, [whole, foreign, trajectory(3)], {})
    with h5py.File(path) as content:
        assert content["data/demo_0/states"].shape == content["data/demo_1/states"].shape == (3, 28)
        assert content["data/demo_0/last_state"].shape == (28,) and "last_state" not in content["data/demo_1"]
        assert content["data/demo_0"].attrs["model_file"] == whole.model_file
    read = load_demonstrations(path, states=True)
    for a, b in zip((whole, foreign), read, strict=False):
        np.testing.assert_array_equal(a.states, b.states)
    assert read[0].model_file == whole.model_file and read[1].model_file is None and read[2].states is None
    assert all(t.states is None and t.model_file is None for t in load_demonstrations(path))


def test_filter_keys_are_robomimics(tmp_path):
    path = tmp_path / "many.hdf5"
    save_demonstrations(path, [trajectory(2 + i) for i in range(12)], {})
    masks = {"train": ["demo_10", "demo_2"], "valid": ["demo_3"], "none": [], "gone": ["demo_2", "demo_12"]}
    with h5py.File(path, "r+") as content:
        for name, demos in masks.items():
            content[f"mask/{name}"] = np.array(demos, dtype="S8")  # as robomimic's split_train_val
        content["mask/text"] = ["demo_1"]
        content["mask/numbers"] = np.arange(3)
        content["mask/repeated"] = np.array(["demo_1"] * 13, dtype="S8")
    assert [t.name for t in load_demonstrations(path)] == [f"demo_{i}" for i in range(12)]
    assert [(t.name, t.horizon) for t in load_demonstrations(path, filter_key="train")] == [
        ("demo_2", 4),
        ("demo_10", 12),
    ]
    assert [t.name for t in load_demonstrations(path, filter_key="text")] == ["demo_1"]
    refused = {
        "test": "has no filter key 'test'; it has gone, none, numbers, repeated, text, train, valid",
        "": "has no filter key ''; it has gone",
        "train/x": "has no filter key 'train/x'; it has gone",
        "none": "mask/none: lists no demonstration",
        "gone": "mask/gone: lists 'demo_12', which is not in the file",
        "numbers": "mask/numbers: is no list of names",
        "repeated": "mask/repeated: has 13 names, but there are 12 demonstrations",
    }
    for key, message in refused.items():
        with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}") as caught:
            load_demonstrations(path, filter_key=key)
        assert "\n" not in str(caught.value)


def test_a_file_without_filter_keys_says_so(file):
    with pytest.raises(ValueError, match=re.escape(f"{file}: has no filter key 'train'; it has none")):
        load_demonstrations(file, filter_key="train")


def test_constant_columns_and_other_numbers_of_points_are_accepted(tmp_path):
    rows = {"state": np.full((3, 8), 0.25), "pointcloud": np.zeros((3, 7, 4))}
    save_demonstrations(tmp_path / "a.hdf5", [Trajectory(rows)], {})
    assert load_demonstrations(tmp_path / "a.hdf5", obs="pointcloud")[0].horizon == 2


SHAPES = {"observation": (25,), "desired_goal": (3,), "image": (None, None, 3)}
BOUNDS = np.array([-1.0, -1.0, -1.0, 0.0]), np.array([1.0, 1.0, 1.0, 100.0])


@pytest.fixture
def reaching(tmp_path) -> Path:
    """A task with other observations and four actions, the last in [0, 100]."""
    rng = np.random.default_rng(0)
    rows = {name: rng.normal(size=(4, *(size or 5 for size in shape))) for name, shape in SHAPES.items()}
    actions = rng.uniform(*BOUNDS, size=(3, 4)).astype(np.float32)
    actions[1, 3] = 100.00001  # a bound, rounded
    path = tmp_path / "reaching.hdf5"
    save_demonstrations(path, [Trajectory(rows | {"time": np.arange(4.0)}, actions)], {"env_name": "Reach-v0"})
    return path


def test_observations_and_actions_of_another_task(reaching):
    (read,) = load_demonstrations(reaching, "desired_goal", shapes=SHAPES, actions=BOUNDS)
    assert {name: rows.shape[1:] for name, rows in read.observations.items()} == {
        "observation": (25,),
        "desired_goal": (3,),
        "image": (5, 5, 3),
    }  # and not the time, which is not asked for
    assert read.actions.shape == (3, 4)
    (timed,) = load_demonstrations(reaching, "time", shapes={"time": ()}, actions=BOUNDS)
    np.testing.assert_array_equal(timed.observations["time"], np.arange(4.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"obs": "state", "shapes": SHAPES},
            "unknown observation 'state'; known observations: observation, desired_goal",
        ),
        ({"shapes": {"observation": (24,)}}, r"demo_0: obs/observation: shape is \(3, 25\), not \(steps, 24\)"),
        ({"shapes": {"achieved_goal": (3,)}}, "demo_0: obs: has none of achieved_goal"),
        ({"shapes": SHAPES, "actions": None}, r"demo_0: actions: shape is \(3, 4\), not \(steps, 2\)"),
        ({"shapes": SHAPES, "actions": (BOUNDS[0], np.ones(4))}, r"demo_0: actions: row 0 is .* outside \[0, 1\]"),
    ],
)
def test_another_task_refuses_what_is_not_its_own(reaching, arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_demonstrations(reaching, **{"actions": BOUNDS} | arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", ".", "a/b", "a\0b"])
def test_names_that_hdf5_does_not_take(tmp_path, name):
    with pytest.raises(ValueError, match=r"demo_0: obs: HDF5 takes no array named .*; rename it"):
        save_demonstrations(tmp_path / "a.hdf5", [Trajectory({name: np.zeros((2, 3))})], {})
    assert not list(tmp_path.iterdir())


def test_saving_keeps_what_is_there(file):
    before = file.read_bytes()
    with pytest.raises(FileExistsError, match="--overwrite"):
        save_demonstrations(file, [trajectory(2)], {})
    with pytest.raises(ValueError, match=re.escape(f"{file}: demo_0: actions: row 1 is")):
        broken = trajectory(2)
        broken.actions[1] = np.nan
        save_demonstrations(file, [broken], {}, overwrite=True)
    assert file.read_bytes() == before
    save_demonstrations(file, [trajectory(2)], {}, overwrite=True)
    assert load_demonstrations(file)[0].horizon == 2


def test_two_readers_of_a_read_only_file(file):
    """Also while another process has it open."""
    file.chmod(0o444)
    script = (
        "import sys; from envs.demonstrations import load_demonstrations;"
        f"print(len(load_demonstrations({str(file)!r})), flush=True); sys.stdin.read()"
    )
    with h5py.File(file, "r"):
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, input=b"", capture_output=True, timeout=300)
        assert done.stdout == b"2\n", done.stderr
        assert len(load_demonstrations(file)) == 2


def test_longer_than_the_horizon(recwarn):
    demonstrations = [trajectory(5), trajectory(12)]
    with pytest.warns(UserWarning, match=r"longer than the horizon of 10 steps: demo_1 \(12 steps\)"):
        warn_if_longer(demonstrations, 10)
    with pytest.warns(UserWarning, match=r"demo_7 \(12 steps\)"):
        warn_if_longer([dataclasses.replace(trajectory(12), name="demo_7")], 10)
    warn_if_longer(demonstrations, 12)
    assert not recwarn.list


def test_shipped_clouds_show_the_puck():
    """Every point lies on the recorded puck, and both displacements are of the same points."""
    for demonstration in load_demonstrations(SHIPPED[3], obs="pointcloud"):
        cloud, state = demonstration.observations["pointcloud"], demonstration.observations["state"]
        for columns, displacement in ((slice(0, 2), state[:, :2]), (slice(2, 4), state[:, 4:6])):
            distance = np.linalg.norm(cloud[..., columns] - displacement[:, None], axis=-1)
            assert distance.max() < 0.032  # the puck's radius and noise


def test_start_needs_state_and_pose():
    with pytest.raises(ValueError, match="no start without puck_pose"):
        Trajectory({"state": np.zeros((2, 8))}).start  # noqa: B018
