"""HDF5 files of any task, in the layouts of robomimic and robosuite."""

import dataclasses
import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from envs.demonstrations import Trajectory, load_demonstrations, read_demonstrations, robomimic, save_demonstrations
from envs.demonstrations.read import read_dataset

SHAPES = {"object": (14,), "robot0_eef_pos": (3,), "agentview_image": (8, 8, 3)}
STEPS = (5, 3)


def recorded(steps: int, seed: int) -> dict[str, np.ndarray]:
    """Observations of which each but the last is followed by an action."""
    rng = np.random.default_rng(seed)
    rows = {name: rng.normal(size=(steps + 1, *shape)) for name, shape in SHAPES.items()}
    return rows | {"agentview_image": rng.integers(0, 256, (steps + 1, 8, 8, 3), np.uint8)}


@pytest.fixture
def file(tmp_path) -> Path:
    """As robomimic's dataset_states_to_obs.py and split_train_val.py write it."""
    path = tmp_path / "low_dim.hdf5"
    with h5py.File(path, "w") as content:
        data = content.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1, "env_kwargs": {"robots": ["Panda"]}})
        data.attrs["total"] = sum(STEPS)
        for i, steps in enumerate(STEPS):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"], demo.attrs["model_file"] = steps, "<mujoco/>"
            for name, rows in recorded(steps, i).items():
                demo[f"obs/{name}"], demo[f"next_obs/{name}"] = rows[:-1], rows[1:]
            demo["actions"] = np.linspace(-1, 1, 7 * steps).reshape(steps, 7)
            demo["states"] = np.random.default_rng(i).normal(size=(steps, 32))
            demo["rewards"], demo["dones"] = np.eye(steps)[-1], np.eye(steps)[-1].astype(int)
        content["mask/train"] = np.array(["demo_1"], dtype="S")
        content["mask/valid"] = np.array(["demo_0"], dtype="S")
    return path


def test_the_last_observation_is_the_last_next_one(file):
    read = read_demonstrations(file)
    for i, (trajectory, steps) in enumerate(zip(read, STEPS, strict=True)):
        assert trajectory.horizon == steps and set(trajectory.observations) == set(SHAPES)
        for name, rows in recorded(steps, i).items():
            np.testing.assert_array_equal(trajectory.observations[name], rows)
            assert trajectory.observations[name].dtype == rows.dtype
        assert trajectory.actions.shape == (steps, 7) and trajectory.states.shape == (steps, 32)
        assert trajectory.model_file == "<mujoco/>"
        assert trajectory.rewards.tolist() == trajectory.dones.tolist() == [0] * (steps - 1) + [1]
    assert [trajectory.filter_keys for trajectory in read] == [("valid",), ("train",)]


def test_without_next_observations_the_last_action_is_left_out(file):
    """What follows it is unknown."""
    with h5py.File(file, "r+") as content:
        for demo in content["data"].values():
            del demo["next_obs"]
    for i, (trajectory, steps) in enumerate(zip(read_demonstrations(file), STEPS, strict=True)):
        assert trajectory.horizon == steps - 1 == len(trajectory.actions) == len(trajectory.rewards)
        assert len(trajectory.states) == steps, "the state after the last action is known"
        np.testing.assert_array_equal(trajectory.observations["object"], recorded(steps, i)["object"][:-1])
        assert trajectory.rewards.sum() == 0


def test_keys_rename_and_join(file):
    keys = {"state": ["robot0_eef_pos", "object"], "place": "robot0_eef_pos"}
    (trajectory,) = read_demonstrations(file, keys, filter_key="train")
    rows = recorded(STEPS[1], 1)
    assert trajectory.name == "demo_1" and list(trajectory.observations) == ["state", "place"]
    np.testing.assert_array_equal(
        trajectory.observations["state"], np.concatenate([rows["robot0_eef_pos"], rows["object"]], axis=1)
    )
    with pytest.raises(ValueError, match=r"demo_0: state: arrays of shapes \(6, 14\), \(6, 8, 8, 3\) cannot be"):
        read_demonstrations(file, {"state": ["object", "agentview_image"]})
    with pytest.raises(
        ValueError, match="demo_0: obs/cube: is missing; it has agentview_image, object, robot0_eef_pos"
    ):
        read_demonstrations(file, {"state": "cube"})


def test_a_task_of_its_own_trains_on_such_a_file(file):
    bounds = (-np.ones(7), np.ones(7))
    shown = load_demonstrations(
        file,
        "object",
        shapes={"object": (14,)},
        success=lambda seen: np.full(len(seen["object"]), np.nan),
        actions=bounds,
    )
    assert [trajectory.horizon for trajectory in shown] == list(STEPS)
    with h5py.File(file, "r+") as content:
        content["data/demo_0/rewards"][...] = [0, 1, 1, 0, 1]
    shown = load_demonstrations(
        file,
        "object",
        shapes={"object": (14,)},
        success=lambda seen: np.full(len(seen["object"]), np.nan),
        actions=bounds,
    )
    assert [trajectory.horizon for trajectory in shown] == [2, STEPS[1]]


def test_many_images_are_read_by_name_alone(file, monkeypatch, capsys):
    monkeypatch.setattr(robomimic, "IMAGES", 1000)  # of 1536 bytes
    assert set(read_demonstrations(file)[0].observations) == {"object", "robot0_eef_pos"}
    assert capsys.readouterr().out == f"{file}: left out the images agentview_image; name them to read them\n"
    (image,) = read_demonstrations(file, {"image": "agentview_image"}, "train")[0].observations.values()
    np.testing.assert_array_equal(image, recorded(STEPS[1], 1)["agentview_image"])


def test_observations_without_a_number_are_read_by_nobody(file):
    """The joints of a gripper that has none."""
    with h5py.File(file, "r+") as content:
        for demo in content["data"].values():
            for part in ("obs", "next_obs"):
                demo[f"{part}/robot0_gripper_qpos"] = np.zeros((len(demo["actions"]), 0))
    assert all(set(trajectory.observations) == set(SHAPES) for trajectory in read_demonstrations(file))
    with pytest.raises(ValueError, match=r"demo_0: obs/robot0_gripper_qpos: shape is \(5, 0\), not \(steps, n\)"):
        read_demonstrations(file, {"state": "robot0_gripper_qpos"})


def test_names_that_are_no_text_are_skipped(file):
    with h5py.File(file, "r+") as content:
        for group in (content["data"], content["data/demo_0/obs"], content["mask"]):
            group[b"\xff"] = np.zeros(3)
    assert [set(trajectory.observations) for trajectory in read_demonstrations(file)] == [set(SHAPES)] * 2
    assert load_demonstrations(file, "object", "train", {"object": (14,)}, actions=(-np.ones(7), np.ones(7)))


def test_a_round_trip_is_exact(tmp_path):
    rng = np.random.default_rng(0)
    written = [
        Trajectory(
            recorded(4, i),
            rng.normal(size=(4, 7)).astype(np.float32),
            seed=i,
            states=rng.normal(size=(5 - i, 32)),
            model_file="<mujoco/>",
            name=f"demo_{i}",
            rewards=rng.normal(size=4),
            dones=np.array([0.0, 1.0, 0.0, 1.0]),
            filter_keys=("all", "train")[: 2 - i],
        )
        for i in range(2)
    ]
    path = tmp_path / "ours.hdf5"
    save_demonstrations(path, written, {"env_name": "Lift"})
    dataset = read_dataset(path)
    assert dataset.env_args == {"env_name": "Lift"}
    for before, after in zip(written, dataset.trajectories, strict=True):
        for field in dataclasses.fields(Trajectory):
            one, other = getattr(before, field.name), getattr(after, field.name)
            if field.name == "observations":
                assert set(one) == set(other)
                for name in one:
                    np.testing.assert_array_equal(one[name], other[name])
                    assert one[name].dtype == other[name].dtype
            else:
                np.testing.assert_array_equal(one, other)
    only = read_demonstrations(path, filter_key="train")
    save_demonstrations(tmp_path / "train.hdf5", only, {})
    assert [t.filter_keys for t in read_demonstrations(tmp_path / "train.hdf5")] == [("all", "train")]


def robosuite_collection(content):
    for demo in content["data"].values():
        for name in ("obs", "next_obs", "rewards", "dones"):
            del demo[name]


def damage(key, rows):
    def do(content):
        del content[f"data/demo_1/{key}"]
        content[f"data/demo_1/{key}"] = rows

    return do


WRONG = {
    "robosuite's collection": (robosuite_collection, "demo_0: has states of the simulator, but no observations; "),
    "no environment": (lambda c: c["data"].attrs.__setitem__("env_args", "Lift"), "env_args: is no JSON object"),
    "a mask of numbers": (lambda c: c.create_dataset("mask/x", data=np.zeros(2)), "mask/x: is no list of names"),
    "text": (damage("obs/object", np.full((3, 14), b"x")), "demo_1: obs/object: holds |S1, not numbers"),
    "flat actions": (damage("actions", np.zeros(3)), "demo_1: actions: shape is (3,), not (steps, n)"),
    "fewer rewards": (damage("rewards", np.zeros(2)), "demo_1: rewards: has 2 rows, not 3"),
    "more states": (damage("states", np.zeros((4, 32))), "demo_1: states: has 4 rows, not 3"),
    "a link": (damage("obs/object", h5py.SoftLink("/data/demo_0/obs/object")), "demo_1: obs/object: is a link"),
    "nothing": (
        lambda c: (
            [c.pop(f"data/demo_{i}/obs") for i in (0, 1)] and [c.create_group(f"data/demo_{i}/obs") for i in (0, 1)]
        ),
        "demo_0: obs: has no observation",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_one_line(file, kind):
    harm, message = WRONG[kind]
    with h5py.File(file, "r+") as content:
        harm(content)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{file}: {message}')}") as caught:
        read_demonstrations(file)
    assert "\n" not in str(caught.value)
