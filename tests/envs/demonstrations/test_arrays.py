"""Demonstrations in NumPy files."""

import re
import zipfile

import numpy as np
import pytest

from envs.demonstrations import load_demonstrations, read_demonstrations

STEPS = (4, 1, 3)
RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(steps + 1, 2)) for steps in STEPS]
ACTIONS = [RNG.normal(size=(steps, 3)).astype(np.float32) for steps in STEPS]
ENDS = np.cumsum([len(part) for part in PARTS])


def test_one_demonstration(tmp_path):
    np.save(tmp_path / "one.npy", PARTS[0])
    (read,) = read_demonstrations(tmp_path / "one.npy")
    np.testing.assert_array_equal(read.observations["observation"], PARTS[0])
    assert read.actions is None and read.name == "demo_0"
    np.savez(tmp_path / "one.npz", observations=PARTS[0], actions=ACTIONS[0])
    (read,) = read_demonstrations(tmp_path / "one.npz", {"state": "observation"})
    np.testing.assert_array_equal(read.observations["state"], PARTS[0])
    np.testing.assert_array_equal(read.actions, ACTIONS[0])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("whole", [False, True])
def test_several_demonstrations(tmp_path, save, whole):
    """With one row of actions for each step, or for each observation, of which the last is left out."""
    unknown = np.full((1, 3), 9, np.float32)
    actions = [np.concatenate([rows, unknown]) for rows in ACTIONS] if whole else ACTIONS
    rewards = [np.arange(len(rows)) for rows in actions]
    images = RNG.integers(0, 256, (ENDS[-1], 8, 8, 3), np.uint8)
    arrays = {"place": np.concatenate(PARTS), "time": np.arange(ENDS[-1]), "image": images}
    signals = {"actions": np.concatenate(actions), "rewards": np.concatenate(rewards)}
    save(tmp_path / "three.npz", **arrays, **signals, episode_ends=ENDS)
    read = read_demonstrations(tmp_path / "three.npz")
    for i, trajectory in enumerate(read):
        assert trajectory.horizon == STEPS[i] and set(trajectory.observations) == {"place", "time", "image"}
        np.testing.assert_array_equal(trajectory.observations["place"], PARTS[i])
        np.testing.assert_array_equal(trajectory.actions, ACTIONS[i])
        assert trajectory.rewards.tolist() == list(range(STEPS[i])) and trajectory.dones is None
        assert trajectory.observations["image"].dtype == np.uint8 and trajectory.actions.dtype == np.float32
    np.testing.assert_array_equal(np.concatenate([t.observations["image"] for t in read]), images)
    joined = read_demonstrations(tmp_path / "three.npz", {"state": ["time", "place"]})
    np.testing.assert_array_equal(joined[1].observations["state"], np.column_stack([[5, 6], PARTS[1]]))


WRONG = {
    "objects": ({"observations": np.array([{}, {}])}, "observation: holds object, not numbers"),
    "text": ({"observations": np.array(["a", "b"])}, "observation: holds <U1, not numbers"),
    "a number": ({"observations": np.array(3.0)}, "observation: shape is (), not (steps, …)"),
    "one row": ({"observations": np.zeros((1, 2))}, "demo_0: obs: has less than 2 rows, so no step"),
    "not finite": ({"observations": np.full((3, 2), np.nan)}, "demo_0: obs/observation: row 0 is not finite"),
    "actions alone": ({"actions": np.zeros((3, 2))}, "holds no observations"),
    "fewer rows": ({"a": np.zeros((3, 2)), "b": np.zeros((2, 2))}, "b: has 2 rows, but a has 3"),
    "fewer actions": ({"a": np.zeros((5, 2)), "actions": np.zeros((3, 2))}, "actions: has 3 rows, not 4; observations"),
    "falling ends": ({"a": np.zeros((5, 2)), "episode_ends": np.array([3, 2, 5])}, "episode_ends: must rise by whole"),
    "early ends": ({"a": np.zeros((5, 2)), "episode_ends": np.array([2, 4])}, "episode_ends: must rise by whole"),
    "half ends": ({"a": np.zeros((5, 2)), "episode_ends": np.array([2.5, 5])}, "episode_ends: must rise by whole"),
    "flat actions": ({"a": np.zeros((5, 2)), "actions": np.zeros(4)}, "demo_0: actions: shape is (4,), not (steps, n)"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_one_line(tmp_path, kind):
    arrays, message = WRONG[kind]
    path = tmp_path / "wrong.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}") as caught:
        read_demonstrations(path)
    assert "\n" not in str(caught.value)


def header(shape: str, version: bytes = b"\x01\x00", size: int = 2) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(size, "little") + text


HOSTILE = {
    "600 GB": (header("(10000000000, 8)"), "(10000000000, 8) numbers are more than the 1024 MiB"),
    "less than nothing": (header("(-3, 8)"), "shape is (-3, 8), not (steps, …)"),
    "less than it says": (header("(10, 8)"), "truncated or damaged"),
    "a long header": (header("(3, 8)", b"\x02\x00", 4), "truncated or damaged (its version is not 1.0)"),
    "no header": (b"\x93NUMPY\x01\x00", "truncated or damaged"),
    "no literal": (header("__import__('os').getpid()"), "truncated or damaged"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_array_is_one_line(tmp_path, kind):
    content, message = HOSTILE[kind]
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("observations.npy", content)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=f"^{tmp_path}/{name}: .*{re.escape(message)}") as caught:
            read_demonstrations(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_a_damaged_archive_is_one_line(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, observations=RNG.normal(size=(500, 8)))
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:300] + b"\0" * 300 + whole[600:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"^{path}: truncated or damaged") as caught:
            read_demonstrations(path)
        assert "\n" not in str(caught.value)


def test_what_is_no_file_of_demonstrations(tmp_path):
    text, empty = tmp_path / "a.csv", tmp_path / "empty.npz"
    text.write_text("state,action\n0,1\n")
    empty.touch()
    np.save(tmp_path / "a.npy", PARTS[0])
    for path, message in {
        tmp_path / "gone.npz": "no such file, and no such Minari data set",
        text: "is neither HDF5 nor NumPy nor the directory of a Minari data set",
        empty: "the file is empty",
        "/dev/null": "a device, not a regular file",
    }.items():
        with pytest.raises(ValueError, match=f"^{path}: {message}"):
            read_demonstrations(path)
    with pytest.raises(ValueError, match="has no filter key 'train'; NumPy files have none"):
        read_demonstrations(tmp_path / "a.npy", filter_key="train")
    with pytest.raises(ValueError, match=r"a\.npy: state: is missing; it has observation"):
        read_demonstrations(tmp_path / "a.npy", {"state": "state"})


def test_the_demonstrations_of_a_task_may_lie_in_a_numpy_file(tmp_path):
    path, rows, actions = tmp_path / "mine.npz", np.arange(8.0).reshape(4, 2), np.full((3, 1), 0.5)
    np.savez(path, place=rows, actions=actions)
    of_task = {"shapes": {"place": (2,)}, "actions": (-np.ones(1), np.ones(1))}
    (found,) = load_demonstrations(path, "place", success=lambda seen: seen["place"][:, 0] >= 4, **of_task)
    np.testing.assert_array_equal(found.observations["place"], rows[:3])
    np.testing.assert_array_equal(found.actions, actions[:2])
    with pytest.raises(ValueError, match=r"place: shape is \(4, 2\), not \(steps, 3\)"):
        load_demonstrations(path, "place", shapes={"place": (3,)})
    np.savez(path, place=rows, actions=5 * actions)
    with pytest.raises(ValueError, match=r"actions: row 0 is \[2\.5\], outside"):
        load_demonstrations(path, "place", **of_task)
