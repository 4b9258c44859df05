"""Trainings on demonstrations that are long, short, constant, broken or shared."""

import dataclasses
import os
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

from agents.methods.shaped_sac import make_agent
from agents.tasks import make_env
from agents.train import main, train
from envs.demonstrations import Trajectory, first_success, load_demonstrations, save_demonstrations
from envs.push.success import push_success
from perception.rendering.ray import RayRenderer


def cut(trajectory: Trajectory, first: int, last: int | None = None, **changes) -> Trajectory:
    """Some steps of a demonstration."""
    rows = {k: v[first : None if last is None else last + 1] for k, v in trajectory.observations.items()}
    return dataclasses.replace(trajectory, observations=rows, actions=trajectory.actions[first:last], **changes)


@pytest.fixture
def recorded(files) -> Trajectory:
    return load_demonstrations(files["demonstrations"])[0]


def written(folder, *trajectories):
    save_demonstrations(folder / "shown.hdf5", trajectories, {})
    return folder / "shown.hdf5"


def test_longer_than_the_horizon_is_a_warning_and_each_keeps_its_own_length(small, recorded, tmp_path):
    standing = {k: np.concatenate([np.repeat(v[:1], 100, axis=0), v]) for k, v in recorded.observations.items()}
    still = np.concatenate([np.zeros((100, 2), np.float32), recorded.actions])
    longer = dataclasses.replace(recorded, observations=standing, actions=still)
    config = small(demonstrations=written(tmp_path, recorded, longer))
    with pytest.warns(UserWarning, match=rf"longer than the horizon of 150 steps: demo_1 \({longer.horizon} steps\)"):
        model = make_agent(config, make_env(config))
    worth = model.replay_buffer.potential.explain(recorded.observations["state"][0])["V_d"]
    for values, shown in zip(worth, (recorded, longer), strict=True):
        assert values[0] == pytest.approx(0.99**shown.horizon, rel=1e-4) and values[-1] == 1.0
    assert model.replay_buffer.demonstrations.size() == recorded.horizon + longer.horizon


def test_one_step_is_enough(small, recorded, tmp_path):
    config = small(demonstrations=written(tmp_path, cut(recorded, recorded.horizon - 1)), steps=80)
    assert train(config)["environment_steps"] == 80


def test_action_free_demonstrations_never_enter_the_replay_buffer(small, recorded, tmp_path):
    free = dataclasses.replace(recorded, actions=None)
    path = written(tmp_path, recorded, free)
    for method in ("buffer", "buffer+potential", "buffer+potential+annealing"):
        with pytest.raises(
            ValueError, match=rf"method '{re.escape(method)}' .* some have no actions; record them with actions"
        ):
            train(small(demonstrations=path, method=method))
    assert not (tmp_path / "run").exists()
    config = small(demonstrations=path, method="potential")
    assert make_agent(config, make_env(config)).replay_buffer.demonstrations is None


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_constant_columns_stay_finite_and_mean_the_same_in_training_and_evaluation(small, recorded, tmp_path, obs):
    """The arm keeps its distance and nothing has a velocity: nothing is divided by a spread of the demonstrations."""
    rows = {k: v.copy() for k, v in recorded.observations.items()}
    rows["state"][:, :4], rows["state"][:, 6:] = [0.05, 0.0, 0.0, 0.0], 0.0
    rows["pointcloud"][..., :2] = rows["pointcloud"][:1, :, :2]
    constant = dataclasses.replace(recorded, observations=rows)
    models = []
    for name, shown in (("constant", constant), ("varying", recorded)):
        (tmp_path / name).mkdir()
        config = small(obs, demonstrations=written(tmp_path / name, shown), out=tmp_path / name / "run")
        models.append(make_agent(config, make_env(config)))
    phi = models[0].replay_buffer.potential(rows[obs].astype(np.float32))
    assert np.isfinite(phi).all()
    batch = models[0].replay_buffer.demonstrations.sample(64)
    assert all(torch.isfinite(part).all() for part in batch if part is not None)
    # what the networks see of an observation depends neither on the demonstrations nor on the mode
    seen = torch.from_numpy(rows[obs][:9].astype(np.float32))
    features = []
    for model in models:
        for mode in (True, False):
            model.policy.set_training_mode(mode)
            with torch.no_grad():
                features.append(model.actor.features_extractor(seen))
    assert torch.isfinite(features[0]).all()
    assert all(torch.equal(features[0], other) for other in features)


def test_frames_without_the_puck_are_counted_in_the_log(small, monkeypatch):
    """It is out of sight in every fourth image; what is stored stays finite."""
    render, images = RayRenderer.render, []

    def blink(self, data):
        depth, mask = render(self, data)
        images.append(mask.any())
        return depth, mask & (len(images) % 4 != 0)

    monkeypatch.setattr(RayRenderer, "render", blink)
    config = small("pointcloud", steps=60)
    train(config)
    header, *rows = (config.out / "progress.csv").read_text().splitlines()
    counted = [float(row.split(",")[header.split(",").index("rollout/hidden_frames")] or 0) for row in rows]
    assert 10 <= counted[-1] <= 30
    model = make_agent(config, make_env(config))
    model.learn(60)
    stored = model.replay_buffer.filled()
    assert model.get_env().get_attr("hidden_frames")[0] >= 10
    assert len(stored["observations"]) == 60 and all(np.isfinite(rows).all() for rows in stored.values())


def idle(trajectory: Trajectory) -> Trajectory:
    """The puck rests in the goal for another 30 frames."""
    rows = {k: np.concatenate([v, np.repeat(v[-1:], 30, axis=0)]) for k, v in trajectory.observations.items()}
    actions = np.concatenate([trajectory.actions, np.zeros((30, 2), np.float32)])
    return dataclasses.replace(trajectory, observations=rows, actions=actions)


def back_and_forth(trajectory: Trajectory) -> Trajectory:
    """The puck leaves the goal as it came, and comes back."""
    there = {k: v[-40:] for k, v in trajectory.observations.items()}
    rows = {k: np.concatenate([v, there[k][::-1], there[k]]) for k, v in trajectory.observations.items()}
    actions = np.concatenate([trajectory.actions, np.zeros((80, 2), np.float32)])
    return dataclasses.replace(trajectory, observations=rows, actions=actions)


@pytest.mark.parametrize("action_free", [False, True])
@pytest.mark.parametrize("change", [idle, back_and_forth])
@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_a_demonstration_ends_at_its_first_success(small, recorded, tmp_path, capsys, obs, change, action_free):
    """V_d, Φ and rows of the buffer are those of the file that somebody has trimmed."""
    end = first_success(recorded.observations, push_success(make_env(small(obs)).unwrapped.goal_reward))
    trimmed, longer = cut(recorded, 0, end), change(recorded)
    if action_free:
        trimmed, longer = (dataclasses.replace(t, actions=None) for t in (trimmed, longer))
    buffers, lines = [], []
    for name, shown in (("trimmed", trimmed), ("longer", longer)):
        save_demonstrations(tmp_path / f"{name}.hdf5", [shown], {})
        method = "potential" if action_free else "buffer+potential+annealing"
        config = small(obs, demonstrations=tmp_path / f"{name}.hdf5", method=method)
        capsys.readouterr()
        buffers.append(make_agent(config, make_env(config)).replay_buffer)
        lines.append([line for line in capsys.readouterr().out.splitlines() if "demo_0" in line])
    cut_line = f"demo_0: cut from {longer.horizon} to {end} steps, at the first success of {obs} observations"
    assert lines == [[], [f"{tmp_path / 'longer.hdf5'}: {cut_line}"]]
    seen = recorded.observations[obs].astype(np.float32)
    one, other = (buffer.potential for buffer in buffers)
    np.testing.assert_array_equal(one(seen), other(seen))
    assert one.fingerprint() == other.fingerprint()
    (worth,) = other.explain(seen[0])["V_d"]
    np.testing.assert_allclose(worth, 0.99 ** np.arange(end, -1, -1), rtol=1e-6)
    if not action_free:
        rows = [buffer.demonstrations.filled() for buffer in buffers]
        assert rows[0].keys() == rows[1].keys()
        for name in rows[0]:
            np.testing.assert_array_equal(rows[0][name], rows[1][name])
        last = np.arange(end) == end - 1
        np.testing.assert_array_equal(rows[1]["rewards"].reshape(-1), last)
        np.testing.assert_array_equal(rows[1]["dones"].reshape(-1), last)


def test_the_shipped_clouds_end_where_the_task_on_clouds_does(small):
    """At 0.1 m/s, six steps before the recorded end at 0.02 m/s."""
    lengths = {}
    for obs in ("state", "pointcloud"):
        config = small(obs, demonstrations=None)
        buffer = make_agent(config, make_env(config)).replay_buffer
        lengths[obs] = (len(buffer.potential.demonstrated) - 1, buffer.demonstrations.size())
    assert lengths == {"state": (126, 126), "pointcloud": (120, 120)}


def test_a_filter_key_chooses_demonstrations(files, small, recorded, tmp_path, capsys):
    path = written(tmp_path, recorded, cut(recorded, 1), cut(recorded, 2))
    with h5py.File(path, "r+") as content:
        content["mask/train"] = np.array(["demo_2", "demo_0"], dtype="S8")
    starts = {}
    for key in (None, "train"):
        config = small(demonstrations=path, filter_key=key)
        starts[key] = make_agent(config, make_env(config)).replay_buffer.potential.demonstrated.starts.tolist()
    horizon = recorded.horizon
    assert starts == {
        None: [0, horizon + 1, 2 * horizon + 1, 3 * horizon],
        "train": [0, horizon + 1, 2 * horizon],
    }
    given = ["--demonstrations", str(path), "--estimator", str(files["state"]), "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as stop:
        main([*given, "--filter-key", "test"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said == f"error: {path}: has no filter key 'test'; it has train\n"
    assert not (tmp_path / "run").exists()


def damaged(path, harm):
    with h5py.File(path, "r+") as content:
        harm(content["data/demo_0"])


def put(group, key, rows):
    del group[key]
    group[key] = rows


BROKEN = {
    "wrong dimension": (lambda d: put(d, "obs/state", d["obs/state"][:, :7]), "demo_0: obs/state: shape is"),
    "out of range": (lambda d: put(d, "actions", d["actions"][()] + 3), "demo_0: actions: row 0 is"),
    "missing key": (lambda d: d["obs"].pop("state"), "demo_0: obs/state: is missing"),
    "not finite": (
        lambda d: put(d, "obs/state", d["obs/state"][()] * np.nan),
        "demo_0: obs/state: row 0 is not finite",
    ),
    "elsewhere": (lambda d: put(d, "obs", h5py.ExternalLink("x.hdf5", "obs")), "demo_0: obs: is a link"),
}


@pytest.mark.parametrize("kind", [*BROKEN, "empty", "truncated", "text", "folder", "nothing"])
def test_a_broken_file_is_one_line_and_nothing_is_trained(kind, files, recorded, tmp_path, capsys):
    path, expected = written(tmp_path, recorded), f"{tmp_path / 'shown.hdf5'}: "
    whole = path.read_bytes()
    if kind in BROKEN:
        damaged(path, BROKEN[kind][0])
        expected += BROKEN[kind][1]
    elif kind in ("empty", "truncated", "text"):
        path.write_bytes({"empty": b"", "truncated": whole[: len(whole) // 2], "text": b"state,action\n"}[kind])
    else:
        path.unlink()
        if kind == "folder":
            path.mkdir()
    with pytest.raises(SystemExit) as stop:
        main(["--demonstrations", str(path), "--estimator", str(files["state"]), "--out", str(tmp_path / "run")])
    said = capsys.readouterr()
    assert stop.value.code != 0 and said.out == ""
    assert said.err.count("\n") == 1 and expected in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_two_trainings_read_one_read_only_file_at_once(files, tmp_path):
    shown = tmp_path / "folder with spaces ü" / "shown.hdf5"
    save_demonstrations(shown, load_demonstrations(files["demonstrations"]), {})
    shown.chmod(0o444)
    short = ["--steps", "40", "--learner.learning-starts", "20", "--learner.batch-size", "16"]
    given = ["--demonstrations", str(shown), "--estimator", str(files["state"]), "--evaluation.final-episodes", "1"]
    with h5py.File(shown, "r"):  # and while it is open elsewhere
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "agents.train", *short, *given, "--out", str(tmp_path / f"run {i}")],
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for i in range(2)
        ]
        said = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert all("Exception ignored" not in err and "Traceback" not in err for _, err in said)


@pytest.mark.parametrize("kept", ["state", "pointcloud"])
def test_what_does_not_end_in_success_is_refused(small, recorded, tmp_path, kept):
    """It would be stored as one, and valued so."""
    short = cut(recorded, 0, recorded.horizon // 2)
    rows = {name: values for name, values in short.observations.items() if name in (kept, "puck_pose")}
    config = small(kept, demonstrations=written(tmp_path, recorded, dataclasses.replace(short, observations=rows)))
    with pytest.raises(ValueError, match=r"shown.hdf5: demo_1 is no success at its end, 0\.\d\d\d from the goal"):
        make_agent(config, make_env(config))
