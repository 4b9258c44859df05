"""Minari data sets, those that Minari itself writes included."""

import json
import re

import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector.episode_buffer import EpisodeBuffer

from assets import path as asset
from envs.demonstrations import Trajectory, read_demonstrations, save_minari
from envs.demonstrations.minari import dataset_path
from envs.demonstrations.read import read_dataset

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")  # it recommends to name author and code


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def trajectory(horizon: int, names=("observation",), **changes) -> Trajectory:
    rng = np.random.default_rng(horizon)
    rows = {name: rng.normal(size=(horizon + 1, 3)).astype(np.float32) for name in names}
    return Trajectory(rows, **{"actions": rng.normal(size=(horizon, 4)), "seed": horizon, "grid": 1} | changes)


def assert_equal(one: Trajectory, other: Trajectory) -> None:
    assert set(one.observations) == set(other.observations) and (one.seed, one.grid) == (other.seed, other.grid)
    for name, rows in one.observations.items():
        np.testing.assert_array_equal(rows, other.observations[name])
        assert rows.dtype == other.observations[name].dtype
    np.testing.assert_array_equal(one.actions, other.actions)


@pytest.mark.parametrize("names", [("observation",), ("observation", "achieved_goal", "desired_goal")])
def test_a_round_trip_is_exact(names, capsys):
    rewards, dones = np.array([0.5, -1.0, 2.0]), np.array([0.0, 1.0, 0.0])
    written = [trajectory(5, names), trajectory(3, names, rewards=rewards, dones=dones, seed=None, grid=None)]
    save_minari("push/test-v0", written, {"env_name": "Lift", "type": 1})
    assert capsys.readouterr().out.startswith("the data set names no environment: Lift (unknown to Gymnasium; --env")
    read = read_demonstrations("minari:push/test-v0")
    for one, other in zip(written, read, strict=True):
        assert_equal(one, other)
    assert read[0].rewards.tolist() == read[0].dones.tolist() == [0, 0, 0, 0, 1]
    np.testing.assert_array_equal(read[1].rewards, rewards)
    np.testing.assert_array_equal(read[1].dones, dones)
    episodes = list(minari.load_dataset("push/test-v0").iterate_episodes())
    assert [e.terminations[-1] for e in episodes] == [True, False] == [not e.truncations[-1] for e in episodes]
    dataset = minari.load_dataset("push/test-v0")
    for episode in episodes:
        first = {k: v[0] for k, v in episode.observations.items()} if len(names) > 1 else episode.observations[0]
        assert dataset.observation_space.contains(first) and dataset.action_space.contains(episode.actions[0])


def test_the_environment_is_recovered():
    """Of the shipped demonstrations, read under another name and from the directory too."""
    shipped = asset("demonstrations/push-slot-3.hdf5")
    dataset = read_dataset(shipped, {"state": "state"})
    save_minari("slot-v0", dataset.trajectories, dataset.env_args)
    recovered = minari.load_dataset("slot-v0")
    assert recovered.total_episodes == 3 and recovered.total_steps == 392
    env = recovered.recover_environment(eval_env=True)
    assert env.spec.id == "PushSlot-v0" and env.spec.kwargs["grids"] == 3
    observation, _ = env.reset(seed=0, options={"grid": 2})
    assert recovered.observation_space.contains(observation) and recovered.action_space == env.action_space
    env.close()
    for found in (
        read_dataset("slot-v0", {"state": "observation"}),
        read_dataset(dataset_path("slot-v0"), {"state": "observation"}),
    ):
        for one, other in zip(dataset.trajectories, found.trajectories, strict=True):
            assert_equal(one, other)
    assert found.env_args["env_name"] == "PushSlot-v0" and found.env_args["type"] == 2


@pytest.fixture
def foreign(tmp_path):
    """A data set of another's hand: a nested Dict with images, and success in infos."""
    parts = {
        "arm": spaces.Dict({"place": spaces.Box(-1, 1, (2,)), "turn": spaces.Box(-1, 1, ())}),
        "goal": spaces.Box(-1, 1, (1,)),
    }
    rng = np.random.default_rng(0)
    observations = {
        "arm": {"place": rng.uniform(-1, 1, (4, 2)), "turn": rng.uniform(-1, 1, 4)},
        "goal": np.ones((4, 1)),
        "camera": rng.integers(0, 256, (4, 32, 32, 3), np.uint8),
    }
    buffer = EpisodeBuffer(
        observations=observations,
        actions=rng.uniform(-2, 2, (3, 5)),
        rewards=[0.0, 0.0, 0.0],
        terminations=[False] * 3,
        truncations=[False, False, True],
        infos={"success": np.array([False, False, True, True]), "more": {"depth": np.zeros((4, 1))}},
    )
    minari.create_dataset_from_buffers(
        "other/hand-v1",
        [buffer],
        observation_space=spaces.Dict(parts | {"camera": spaces.Box(0, 255, (32, 32, 3), np.uint8)}),
        action_space=spaces.Box(-2, 2, (5,), np.float64),
    )
    return observations


def test_nested_observations_and_success_of_infos(foreign, capsys):
    path = dataset_path("other/hand-v1")
    (read,) = read_demonstrations(path)
    assert capsys.readouterr().out == f"{path}: left out the images camera, which are stored as JPEG\n"
    assert list(read.observations) == ["arm.place", "arm.turn", "goal"] and read.dones.tolist() == [0, 1, 1]
    (joined,) = read_demonstrations(path, {"state": ["arm.turn", "arm.place"], "goal": "goal"})
    arm = foreign["arm"]
    np.testing.assert_array_equal(joined.observations["state"], np.column_stack([arm["turn"], arm["place"]]))
    for keys, message in (
        ("camera", "obs/camera: is stored as JPEG"),
        ("leg", "obs/leg: is missing; it has arm.place"),
    ):
        with pytest.raises(ValueError, match=f"main_data.hdf5: episode_0: {message}"):
            read_demonstrations(path, {"x": keys})


def change(key, value):
    def do(data):
        metadata = json.loads((data / "metadata.json").read_text())
        (data / "metadata.json").write_text(json.dumps(metadata | {key: value}))

    return do


def content(do):
    def change(data):
        with h5py.File(data / "main_data.hdf5", "r+") as file:
            do(file)

    return change


def put(group, key, rows):
    del group[key]
    group[key] = rows


WRONG = {
    "arrow": (change("data_format", "arrow"), "metadata.json: data_format: is 'arrow'; only 'hdf5' is read"),
    "spaces": (change("observation_space", "{"), "metadata.json: truncated or damaged"),
    "list": (lambda data: (data / "metadata.json").write_text("[]"), "metadata.json: truncated or damaged"),
    "no description": (lambda data: (data / "metadata.json").unlink(), "metadata.json: is missing; not a Minari"),
    "no data": (lambda data: (data / "main_data.hdf5").unlink(), "main_data.hdf5: no such file"),
    "no episode": (content(lambda f: f.pop("episode_0")), "main_data.hdf5: holds no episode"),
    "truncated": (
        lambda data: (data / "main_data.hdf5").write_bytes((data / "main_data.hdf5").read_bytes()[:5000]),
        "main_data.hdf5: truncated or damaged",
    ),
    "a link": (
        content(lambda f: put(f["episode_0"], "observations", h5py.ExternalLink("x.hdf5", "/"))),
        "main_data.hdf5: episode_0: obs: is a link",
    ),
    "a circle": (
        content(lambda f: put(f["episode_0"], "observations", f["episode_0"])),
        "main_data.hdf5: episode_0: obs/observations: is another name of a group that was read already",
    ),
    "600 GB": (
        content(lambda f: f["episode_0/observations"].create_dataset("big", (10**10, 8), "f8", chunks=(10, 8))),
        "main_data.hdf5: episode_0: obs/big: (10000000000, 8) numbers are more than the 1024 MiB",
    ),
    "short success": (
        content(lambda f: put(f["episode_0/infos"], "success", np.zeros(2))),
        "main_data.hdf5: episode_0: infos/success: has 2 rows, not 4",
    ),
    "discrete actions": (
        content(lambda f: put(f["episode_0"], "actions", np.zeros(3, int))),
        "main_data.hdf5: episode_0: actions: shape is (3,), not (steps, n)",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_data_set_is_one_line(foreign, kind):
    path = dataset_path("other/hand-v1")
    harm, message = WRONG[kind]
    harm(path / "data")
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}/data/{message}')}") as caught:
        read_demonstrations(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="has no filter key 'train'; Minari data sets have none"):
        read_demonstrations(path, filter_key="train")


def test_what_minari_cannot_hold_is_refused(tmp_path):
    image = Trajectory({"image": np.zeros((2, 8, 8, 3), np.uint8)}, np.zeros((1, 2)))
    for name, shown, message in (
        ("a-v0", trajectory(3, actions=None), "demo_0: has no actions, which Minari needs"),
        ("a-v0", image, "demo_0: obs/image: Minari compresses images"),
        ("a", trajectory(3), "is no identifier of a data set"),
        ("../a-v0", trajectory(3), "is no identifier of a data set"),
    ):
        with pytest.raises(ValueError, match=f"^minari:{name}: {message}"):
            save_minari(name, [shown], {})
    assert not list(tmp_path.iterdir())


def test_an_existing_data_set_stays_until_the_new_one_is_written(monkeypatch):
    save_minari("a-v0", [trajectory(3)], {})
    with pytest.raises(FileExistsError, match=r"minari:a-v0: .* exists already; .*--overwrite"):
        save_minari("a-v0", [trajectory(4)], {})

    def fail(*arguments, **more):
        (dataset_path("a-v0") / "data").mkdir(parents=True)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(minari, "create_dataset_from_buffers", fail)
        with pytest.raises(OSError, match="No space left"):
            save_minari("a-v0", [trajectory(4)], {}, overwrite=True)
    assert_equal(read_demonstrations("a-v0")[0], trajectory(3))
    save_minari("a-v0", [trajectory(4)], {}, overwrite=True)
    assert_equal(read_demonstrations("a-v0")[0], trajectory(4))
    assert [path.name for path in dataset_path("").iterdir()] == ["a-v0"]
