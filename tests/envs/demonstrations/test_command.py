"""The command line that shows and converts demonstrations."""

import h5py
import minari
import numpy as np
import pytest

from assets import path as asset
from envs.demonstrations import read_demonstrations
from envs.demonstrations.__main__ import main

SHIPPED = asset("demonstrations/push-slot-3.hdf5")


def told(capsys, *arguments) -> list[str]:
    main([str(argument) for argument in arguments])
    return [" ".join(line.strip("│┃ ").split()) for line in capsys.readouterr().out.splitlines()]


def test_what_a_file_holds(tmp_path, capsys):
    lines = told(capsys, "info", SHIPPED)
    for line in (
        "format │ HDF5 (robomimic)",
        "environment │ PushSlot",
        "demonstrations │ 3",
        "steps │ 392, 116 to 138 each",
        "success at the end │ 3 of 3 by a reward of 1, 3 of 3 by done",
    ):
        assert line in lines
    (state,) = [line for line in lines if line.startswith("observation state")]
    rows = np.concatenate([t.observations["state"] for t in read_demonstrations(SHIPPED)])
    assert state == f"observation state │ (8,) float32, {rows.min():.4g} to {rows.max():.4g}"
    np.save(tmp_path / "a.npy", np.zeros((5, 2)))
    lines = told(capsys, "info", tmp_path / "a.npy")
    assert {"environment │ not recorded", "actions │ not recorded", "success at the end │ not recorded"} <= set(lines)


def test_from_format_to_format(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    first, last = tmp_path / "new" / "a.hdf5", tmp_path / "b.h5"
    with h5py.File(tmp_path / "masked.hdf5", "w") as content, h5py.File(SHIPPED) as shipped:
        shipped.copy("data", content)
        content["mask/train"] = np.array(["demo_0", "demo_2"], dtype="S")
    lines = told(capsys, "convert", tmp_path / "masked.hdf5", first, "--filter-key", "train")
    assert lines == [f"wrote 2 demonstrations of 254 steps to {first}"]
    assert "filter key train │ 2 demonstrations" in told(capsys, "info", first)
    lines = told(capsys, "convert", first, "minari:push/slot-v0", "--keys", "both=state,puck_pose", "state=state")
    assert lines == [
        "Minari has no place for the states and the model of the simulator, they are left out",
        f"wrote 2 demonstrations of 254 steps to {tmp_path / 'push/slot-v0'}",
    ]
    assert minari.load_dataset("push/slot-v0").spec.env_spec.id == "PushSlot-v0"
    told(capsys, "convert", "minari:push/slot-v0", last)
    for one, other in zip(np.array(read_demonstrations(SHIPPED))[[0, 2]], read_demonstrations(last), strict=True):
        np.testing.assert_array_equal(one.observations["state"], other.observations["state"])
        np.testing.assert_array_equal(one.observations["puck_pose"], other.observations["both"][:, 8:])
        np.testing.assert_array_equal(one.actions, other.actions)
    assert "environment │ PushSlot-v0" in told(capsys, "info", last)


def test_the_environment_can_be_named(tmp_path, monkeypatch, capsys):
    """By a module that registers it, here the one of a file that names no environment."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    (tmp_path / "swinging.py").write_text(
        "import gymnasium as gym\ngym.register('Swing-v0', gym.spec('Pendulum-v1').entry_point, max_episode_steps=7)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    np.savez(tmp_path / "a.npz", observations=np.zeros((5, 3)), actions=np.ones((4, 1), np.float32))
    convert = ["convert", tmp_path / "a.npz", "minari:swing/up-v0", "--env", "swinging:Swing-v0"]
    told(capsys, *convert)
    recovered = minari.load_dataset("swing/up-v0")
    assert recovered.recover_environment().spec.id == "Swing-v0" and recovered.action_space.high == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", SHIPPED, "a.hdf5", "--env", "Swing-v1"], "--env: 'Swing-v1' is unknown to Gymnasium; MODULE:NAME"),
        (["convert", SHIPPED, "a.hdf5", "--env", "no_such:Swing-v1"], "No module named 'no_such'"),
        (["info", "gone.hdf5"], "gone.hdf5: no such file, and no such Minari data set"),
        (["convert", SHIPPED, "a.csv"], "a.csv: unknown format; end the name in .hdf5 or .h5, or give minari:ID"),
        (["convert", SHIPPED, "a.hdf5", "--keys", "state"], "--keys: 'state' is not NAME=SOURCE or NAME=SOURCE,SOURCE"),
        (
            ["convert", SHIPPED, "a.hdf5", "--keys", "x=cube"],
            "obs/cube: is missing; it has pointcloud, puck_pose, state",
        ),
        (["convert", SHIPPED, "a.hdf5", "--filter-key", "x"], "has no filter key 'x'; it has none"),
        (["convert", SHIPPED, "here.hdf5"], "here.hdf5: exists already; choose another name or --overwrite"),
        (["convert", SHIPPED, "minari:x"], "minari:x: is no identifier of a data set, such as push/slot-v0"),
    ],
)
def test_bad_input_ends_in_one_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.hdf5").write_text("mine")
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.startswith("error: ") and message in said and said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["here.hdf5"]
    assert (tmp_path / "here.hdf5").read_text() == "mine"
