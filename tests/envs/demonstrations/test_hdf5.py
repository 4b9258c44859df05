"""Demonstration files of unknown origin: nothing outside is opened, nothing is executed, no absurd memory is taken."""

import os
import pickle
import re
import shutil
import threading
import tracemalloc

import h5py
import numpy as np
import pytest

from envs.demonstrations import Trajectory, load_demonstrations, save_demonstrations


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "demonstrations.hdf5"
    rows = {"state": np.zeros((4, 8)), "pointcloud": np.zeros((4, 20, 4))}
    save_demonstrations(path, [Trajectory(rows, np.zeros((3, 2)), grid=0, seed=0)], {})
    shutil.copy(path, tmp_path / "other.hdf5")
    return path


def put(group, key, value):
    del group[key]
    group[key] = value


def virtual(demo, other):
    layout = h5py.VirtualLayout((4, 8), "f8")
    layout[:] = h5py.VirtualSource(other, "data/demo_0/obs/state", (4, 8))
    del demo["obs/state"]
    demo.create_virtual_dataset("obs/state", layout)


def declared(demo, key, shape, **settings):
    del demo[key]
    demo.create_dataset(key, shape, settings.pop("dtype", "f8"), **settings)


LINK = "is a link; copy what it points to into the file"
HOSTILE = {
    "array elsewhere": (
        lambda d, o: put(d, "obs/state", h5py.ExternalLink(o, "data/demo_0/obs/state")),
        "obs/state",
        LINK,
    ),
    "group elsewhere": (lambda d, o: put(d, "obs", h5py.ExternalLink(o, "data/demo_0/obs")), "obs", LINK),
    "link in a circle": (lambda d, o: put(d, "obs", h5py.SoftLink("/data/demo_0/obs")), "obs", LINK),
    "link to nothing": (lambda d, o: put(d, "actions", h5py.SoftLink("/nothing")), "actions", LINK),
    "virtual": (virtual, "obs/state", "its numbers lie in another file"),
    "raw bytes elsewhere": (
        lambda d, o: declared(d, "obs/state", (4, 8), external=[(o, 0, h5py.h5f.UNLIMITED)]),
        "obs/state",
        "its numbers lie in another file",
    ),
    "600 GB": (
        lambda d, o: declared(d, "obs/state", (10**10, 8), chunks=(10, 8)),
        "obs/state",
        "more than the 1024 MiB",
    ),
    "many points": (
        lambda d, o: declared(d, "obs/pointcloud", (4, 10**9, 4), chunks=(1, 10, 4)),
        "obs/pointcloud",
        "more",
    ),
    "a bomb": (
        lambda d, o: declared(d, "actions", (10**8, 2), chunks=(10**5, 2), compression="gzip"),
        "actions",
        "more than the 1024 MiB",
    ),
    "large chunks": (
        lambda d, o: declared(d, "actions", (3, 2), chunks=(10**8, 2), maxshape=(None, 2)),
        "actions",
        "more than the 1024 MiB",
    ),
    "fill values": (
        lambda d, o: declared(d, "obs/state", (2**24, 8), dtype="f4"),
        "obs/state",
        "more than the 1024 MiB",
    ),
    "fill values of a byte": (
        lambda d, o: declared(d, "obs/state", (10**7, 8), dtype="i1", chunks=(1000, 8)),
        "obs/state",
        "more than the 1024 MiB",
    ),
    "more rows than a size holds": (
        lambda d, o: declared(d, "obs/state", (2**61, 8), chunks=(10, 8)),
        "obs/state",
        "more than the 1024 MiB",
    ),
    "next observations elsewhere": (
        lambda d, o: put(d, "next_obs/state", h5py.ExternalLink(o, "data/demo_0/obs/state")),
        "next_obs/state",
        LINK,
    ),
    "large chunks of next observations": (
        lambda d, o: declared(d, "next_obs/state", (3, 8), chunks=(10**8, 8), maxshape=(None, 8)),
        "next_obs/state",
        "more than the 1024 MiB",
    ),
    "objects": (lambda d, o: declared(d, "obs/state", (4, 8), dtype=h5py.string_dtype()), "obs/state", "not numbers"),
    "references": (lambda d, o: declared(d, "obs/state", (4, 8), dtype=h5py.ref_dtype), "obs/state", "not numbers"),
    "complex": (lambda d, o: declared(d, "obs/state", (4, 8), dtype="c16"), "obs/state", "not numbers"),
    "a number": (lambda d, o: put(d, "obs/state", 3.0), "obs/state", "shape is ()"),
    "a type": (lambda d, o: put(d, "obs/state", np.dtype("f8")), "obs/state", "not an array"),
    "a pickle": (lambda d, o: d.attrs.__setitem__("grid", np.void(pickle.dumps(print))), "grid", "is no number"),
    "words": (lambda d, o: d.attrs.__setitem__("seed", "seven"), "seed", "is no number"),
    "two grids": (lambda d, o: d.attrs.__setitem__("grid", [1, 2]), "grid", "is no number"),
    "grid -1": (lambda d, o: d.attrs.__setitem__("grid", -1), "grid", "is -1, not a whole number from 0 on"),
    "no seed": (lambda d, o: d.attrs.__setitem__("seed", np.nan), "seed", "not 1 finite number"),
    "tip": (lambda d, o: d.attrs.__setitem__("end_effector", [0.0, np.inf]), "end_effector", "not 2 finite numbers"),
    "beyond single precision": (lambda d, o: put(d, "obs/state", np.full((3, 8), 1e300)), "obs/state", "not finite"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_one_line(file, tmp_path, kind):
    harm, key, message = HOSTILE[kind]
    with h5py.File(file, "r+") as content:
        harm(content["data/demo_0"], str(tmp_path / "other.hdf5"))
    with pytest.raises(ValueError, match=re.escape(f"{file}: demo_0: {key}: ") + ".*" + re.escape(message)) as caught:
        load_demonstrations(file, obs="state")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_linked_file_is_not_even_opened(file, tmp_path):
    """Opening a pipe would wait for its other end."""
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(file, "r+") as content:
        for name in ("obs", "rewards"):
            put(content["data/demo_0"], name, h5py.ExternalLink(str(tmp_path / "pipe"), "x"))
        content["data/demo_1"] = h5py.ExternalLink(str(tmp_path / "pipe"), "x")
    said = []

    def read():
        try:
            load_demonstrations(file)
        except ValueError as error:
            said.append(str(error))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(timeout=300)
    assert said and LINK in said[0]


def test_many_arrays_share_one_budget(file):
    """Each of 40 demonstrations alone would fit."""
    with h5py.File(file, "r+") as content:
        for i in range(1, 40):
            content.copy("data/demo_0", content["data"], f"demo_{i}")
            demo = content[f"data/demo_{i}"]
            del demo["next_obs"]
            declared(demo, "obs/pointcloud", (4, 400_000, 4), chunks=(1, 1000, 4))
    with pytest.raises(ValueError, match=r"demo_\d+: obs/pointcloud: .* more than the 1024 MiB that a file may hold"):
        load_demonstrations(file)


def test_sizes_are_counted_before_memory_is_taken(file):
    """The last array is one too many; those before it are not read."""
    with h5py.File(file, "r+") as content:
        for i in range(1, 4):
            content.copy("data/demo_0", content["data"], f"demo_{i}")
            declared(content[f"data/demo_{i}"], "obs/state", (3_000_000, 8))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"demo_3: obs/state: .* more than the 1024 MiB that a file may hold"):
            load_demonstrations(file)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("following", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "?"])
def test_no_more_memory_is_taken_than_is_counted(file, dtype, following):
    """With and without `next_obs`, of which the last row alone is read."""
    rows = 200_000
    with h5py.File(file, "r+") as content:
        demo = content["data/demo_0"]
        parts = {"obs": rows, "next_obs": rows} if following else {"obs": rows + 1}
        for part, length in parts.items():
            declared(demo, f"{part}/state", (length, 8), dtype=dtype)
            declared(demo, f"{part}/pointcloud", (length, 2, 4), dtype=dtype, chunks=(1000, 2, 4))
        declared(demo, "actions", (rows, 2), dtype=dtype)
        for key in ("rewards", "dones"):
            declared(demo, key, (rows,))
        if not following:
            del demo["next_obs"]
        del demo.attrs["num_samples"]
    counted = 2 * rows * 10 * (12 if dtype == "f4" else 16)
    tracemalloc.start()
    try:
        assert load_demonstrations(file)[0].horizon == rows
        assert tracemalloc.get_traced_memory()[1] < counted
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["f2", ">f8", "i4", "?", np.longdouble])
def test_numbers_of_any_kind_are_read_as_floats(file, dtype):
    with h5py.File(file, "r+") as content:
        for part in ("obs", "next_obs"):
            put(content["data/demo_0"], f"{part}/state", np.ones((3, 8), dtype))
    state = load_demonstrations(file)[0].observations["state"]
    assert state.dtype == np.float64
    np.testing.assert_array_equal(state, 1.0)


@pytest.mark.parametrize("name", ["with space/a b.hdf5", "ünï cödé ☃.hdf5", "-.hdf5", "no suffix"])
def test_paths_of_any_kind(file, tmp_path, name):
    path = tmp_path / "new" / name
    save_demonstrations(path, load_demonstrations(file), {})
    assert load_demonstrations(path, obs="pointcloud")[0].horizon == 3


def test_paths_that_cannot_be(tmp_path):
    for path in ("x" * 300, "a\0b", "", tmp_path, "/dev/null"):
        with pytest.raises(
            ValueError, match=r"no such file|too long|a (directory|device), not a regular file"
        ) as caught:
            load_demonstrations(path)
        assert "\n" not in str(caught.value)
