"""What is broken in a file of demonstrations is named in one line."""

import dataclasses
import re

import h5py
import numpy as np
import pytest

from envs.demonstrations import load_demonstrations, save_demonstrations
from tests.envs.demonstrations.conftest import trajectory


def replace(group: h5py.Group, key: str, rows: np.ndarray) -> None:
    del group[key]
    group[key] = rows


def set_row(group: h5py.Group, key: str, row: int, value: float) -> None:
    rows = group[key][()]
    rows[row] = value
    replace(group, key, rows)


def empty(group: h5py.Group, *names: str) -> None:
    for part in ("obs", "next_obs"):
        for name in names:
            replace(group[part], name, group[part][name][:0])


def only_the_first(group: h5py.Group) -> None:
    del group["next_obs"]
    for name in list(group["obs"]):
        replace(group["obs"], name, group["obs"][name][:1])


DEFECTS = {
    "no state": (lambda d: d["obs"].pop("state"), "demo_1: obs/state: is missing"),
    "no obs": (lambda d: d.pop("obs"), "demo_1: obs: is missing"),
    "obs is an array": (lambda d: replace(d, "obs", np.zeros(3)), "demo_1: obs: is missing"),
    "wrong state": (lambda d: replace(d, "obs/state", np.zeros((4, 7))), r"demo_1: obs/state: shape is \(4, 7\), not"),
    "flat cloud": (lambda d: replace(d, "obs/pointcloud", np.zeros((4, 80))), r"demo_1: obs/pointcloud: shape is"),
    "no points": (lambda d: replace(d, "obs/pointcloud", np.zeros((4, 0, 4))), r"demo_1: obs/pointcloud: shape is"),
    "wrong action": (lambda d: replace(d, "actions", np.zeros((3, 3))), r"demo_1: actions: shape is \(3, 3\)"),
    "big action": (lambda d: set_row(d, "actions", 2, 1.01), r"demo_1: actions: row 2 is \[1.01, 1.01\], outside"),
    "NaN state": (lambda d: set_row(d, "obs/state", 2, np.nan), "demo_1: obs/state: row 2 is not finite"),
    "NaN last state": (lambda d: set_row(d, "next_obs/state", 2, np.nan), "demo_1: obs/state: row 3 is not finite"),
    "no next state": (lambda d: d["next_obs"].pop("state"), "demo_1: next_obs/state: is missing"),
    "wrong next state": (lambda d: replace(d, "next_obs/state", np.zeros((3, 7))), "demo_1: next_obs/state: shape is"),
    "NaN action": (lambda d: set_row(d, "actions", 0, np.nan), "demo_1: actions: row 0 is not finite"),
    "infinite cloud": (lambda d: set_row(d, "obs/pointcloud", 0, np.inf), "demo_1: obs/pointcloud: row 0 is not"),
    "text": (lambda d: replace(d, "actions", np.full((3, 2), b"x")), "demo_1: actions: holds .* not numbers"),
    "short state": (
        lambda d: replace(d, "obs/state", np.zeros((2, 8))),
        "demo_1: next_obs/state: has 3 rows, but obs/state has 2",
    ),
    "fewer states": (
        lambda d: [replace(d, f"{part}/state", np.zeros((2, 8))) for part in ("obs", "next_obs")],
        "demo_1: obs/pointcloud: has 4 rows, not 3",
    ),
    "long actions": (lambda d: replace(d, "actions", np.zeros((4, 2))), "demo_1: actions: has 4 rows, not 3"),
    "short rewards": (lambda d: replace(d, "rewards", np.zeros(2)), "demo_1: rewards: has 2 rows, not 3"),
    "no rows of state": (lambda d: empty(d, "state"), "demo_1: obs/state: has no rows"),
    "no rows of clouds": (lambda d: empty(d, "pointcloud"), "demo_1: obs/pointcloud: has no rows"),
    "no rows at all": (lambda d: empty(d, *d["obs"]), "demo_1: obs/state: has no rows"),
    "no rows of actions": (lambda d: replace(d, "actions", np.zeros((0, 2))), "demo_1: actions: has no rows"),
    "no rows of rewards": (lambda d: replace(d, "rewards", np.zeros(0)), "demo_1: rewards: has no rows"),
    "num_samples": (lambda d: d.attrs.__setitem__("num_samples", 9), "demo_1: num_samples: is 9"),
    "no step": (only_the_first, "demo_1: obs: has less than 2 rows"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_broken_demonstration_is_named(file, defect):
    damage, message = DEFECTS[defect]
    with h5py.File(file, "r+") as content:
        damage(content["data/demo_1"])
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))}: {message}") as caught:
        load_demonstrations(file, obs="state")
    assert "\n" not in str(caught.value)


STATES = {
    "too few": (lambda d: replace(d, "states", d["states"][:2]), "demo_0: states: has 2 rows, not 3"),
    "too many": (lambda d: replace(d, "states", np.zeros((6, 28))), "demo_0: states: has 6 rows, not 3"),
    "none": (lambda d: replace(d, "states", np.zeros((0, 28))), "demo_0: states: has no rows"),
    "flat": (lambda d: replace(d, "states", np.zeros(84)), r"demo_0: states: shape is \(84,\), not \(steps, n\)"),
    "not finite": (lambda d: set_row(d, "states", 1, np.nan), "demo_0: states: row 1 is not finite"),
    "another last": (lambda d: replace(d, "last_state", np.zeros(9)), "demo_0: last_state: has 9 numbers, but"),
    "model": (lambda d: d.attrs.__setitem__("model_file", 3), "demo_0: model_file: is no text"),
}


@pytest.mark.parametrize("defect", STATES)
def test_broken_states_are_named_by_whoever_reads_them(tmp_path, defect):
    path = tmp_path / "states.hdf5"
    save_demonstrations(path, [dataclasses.replace(trajectory(3), states=np.zeros((4, 28)), model_file="<a/>")], {})
    damage, message = STATES[defect]
    with h5py.File(path, "r+") as content:
        damage(content["data/demo_0"])
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        load_demonstrations(path, states=True)
    assert "\n" not in str(caught.value)
    assert load_demonstrations(path)[0].horizon == 3


def test_a_broken_file_is_named(file, tmp_path):
    empty, text, cut, bare = (tmp_path / name for name in ("empty.hdf5", "text.hdf5", "cut.hdf5", "bare.hdf5"))
    empty.touch()
    text.write_text("state,action\n0,1\n")
    cut.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    with h5py.File(bare, "w") as content:
        content.create_group("data")
    cases = {
        tmp_path / "none.hdf5": "no such file",
        tmp_path: "a directory, not a regular file",
        empty: "the file is empty",
        text: "not an HDF5 file",
        cut: "truncated or damaged",
        bare: "holds no demonstration",
    }
    for path, message in cases.items():
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
            load_demonstrations(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="unknown observation 'depth'; known observations: state, pointcloud"):
        load_demonstrations(file, obs="depth")
