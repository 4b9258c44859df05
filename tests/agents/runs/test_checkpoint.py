"""Damaged checkpoints, checkpoints of something else, and directories that somebody else uses."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch

from agents import runs
from agents.methods.shaped_sac import make_agent
from agents.runs.checkpoint import list_checkpoints, load_checkpoint, newest_intact, save_checkpoint
from agents.runs.lock import locked
from agents.tasks import make_env
from agents.train import main, train
from shaping.tensors import read_tensors
from shaping.value import ValueEstimator


@pytest.fixture(scope="module")
def original(configured, files, crash, tmp_path_factory):
    """A run that crashed at step 70, with checkpoints at 30 and 60, and an estimator of its own."""
    folder = tmp_path_factory.mktemp("crashed")
    config = configured(folder / "run", steps=80, checkpoint_every=30, estimator=folder / "mine.pt")
    shutil.copy(files["state"], config.estimator)
    crash(config, 70)
    return config


@pytest.fixture
def crashed(original, tmp_path):
    return shutil.copytree(original.out, tmp_path / "run")


def resume(directory, **changes):
    return train(dataclasses.replace(runs.read_config(directory), resume=directory, **changes))


def damage(file, how):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if how == "remove":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if how == "truncate" else content)


@pytest.mark.parametrize("name", ["agent.pt", "buffer.rewards.npy", "demonstrations.actions.npy", "manifest.json"])
@pytest.mark.parametrize("how", ["flip", "truncate", "remove"])
def test_damage_to_any_file_is_found_and_the_checkpoint_before_is_used(crashed, name, how):
    older, newer = list_checkpoints(crashed / runs.CHECKPOINTS)
    assert newest_intact(newer.parent) == (newer, {})
    damage(newer / name, how)
    found, damages = newest_intact(newer.parent)
    assert found == older and f"{newer} is damaged" in damages[newer]


def test_a_resume_says_what_is_damaged_and_sets_it_aside(crashed, capsys):
    newer = list_checkpoints(crashed / runs.CHECKPOINTS)[-1]
    damage(newer / "buffer.rewards.npy", "flip")
    resume(crashed)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "damaged" in line] == [
        f"{newer} is damaged (buffer.rewards.npy is not what was written)"
    ]
    assert f"resumed {crashed} at step 30" in lines
    assert sorted(path.name for path in newer.parent.iterdir()) == [
        "damaged-step-000000060",
        "step-000000060",
        "step-000000080",
    ]


def test_without_an_intact_checkpoint_nothing_is_written(crashed, capsys):
    for path in list_checkpoints(crashed / runs.CHECKPOINTS):
        damage(path / "agent.pt", "truncate")
    before = {path: path.stat().st_mtime_ns for path in crashed.rglob("*") if path.is_file() and path.name != ".lock"}
    with pytest.raises(SystemExit):
        main(["--resume", str(crashed)])
    error = capsys.readouterr().err
    assert (
        f"{crashed} has no intact checkpoint; put back a copy of one, or train anew with another --out" in error
        and error.count("\n") == 1
    )
    after = {path: path.stat().st_mtime_ns for path in crashed.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_what_a_killed_writer_left_is_removed(crashed):
    partial = crashed / runs.CHECKPOINTS / ".step-000000070.partial"
    partial.mkdir()
    (partial / "agent.pt").write_bytes(b"half")
    (crashed / ".progress.csv.1.partial").write_bytes(b"half")
    assert newest_intact(partial.parent)[0].name == "step-000000060"
    resume(crashed)
    assert not list(crashed.rglob("*.partial"))


def test_two_processes_do_not_train_in_one_directory(crashed, capsys):
    with locked(crashed), pytest.raises(SystemExit):
        main(["--resume", str(crashed)])
    error = capsys.readouterr().err
    assert f"another process is training in {crashed}" in error and error.count("\n") == 1
    with locked(crashed):  # free again, though the file is still there
        pass


def test_another_estimator_is_refused(original, crashed):
    mine = original.estimator.read_bytes()
    torch.manual_seed(1)
    ValueEstimator("state", "state").save(original.estimator)
    with pytest.raises(ValueError, match="not those of this run"):
        resume(crashed)
    original.estimator.write_bytes(mine)


def test_an_edited_configuration_is_refused(crashed):
    path = crashed / "config.json"
    path.write_text(path.read_text().replace('"batch_size": 32', '"batch_size": 33'))
    with pytest.raises(ValueError, match=r"config\.json: learner\.batch_size is 33, but the run was made with 32"):
        resume(crashed)


def test_fewer_steps_than_are_done_are_refused(crashed):
    with pytest.raises(ValueError, match=r"--steps is 50, but .* has 60 already"):
        resume(crashed, steps=50)


def test_other_networks_are_refused(original, crashed):
    learner = dataclasses.replace(original.learner, net_arch=(16, 16))
    model = make_agent(dataclasses.replace(original, learner=learner), make_env(original))
    with pytest.raises(ValueError, match=r"does not belong to this configuration: .*size mismatch"):
        load_checkpoint(model, list_checkpoints(crashed / runs.CHECKPOINTS)[-1])


def test_a_checkpoint_of_a_version_that_stored_other_files_is_refused_in_one_line(crashed, capsys):
    for path in list_checkpoints(crashed / runs.CHECKPOINTS):
        checksums = json.loads((path / "manifest.json").read_text())
        del checksums["buffer.next_observations_apart.npy"]
        (path / "manifest.json").write_text(json.dumps(checksums))
        (path / "buffer.next_observations_apart.npy").unlink()
    with pytest.raises(SystemExit):
        main(["--resume", str(crashed)])
    error = capsys.readouterr().err
    assert "has no buffer.next_observations_apart.npy: another version of the program wrote it; train anew" in error
    assert error.count("\n") == 1


def test_predicting_from_a_checkpoint_needs_no_environment(crashed, monkeypatch):
    monkeypatch.setattr("agents.tasks.push.gym.make", None)
    path = list_checkpoints(crashed / runs.CHECKPOINTS)[-1]
    policy, _ = runs.load_policy(path)
    action, _ = policy.predict(np.zeros(8, np.float32), deterministic=True)
    assert action.shape == (2,) and np.abs(action).max() <= 1


def test_numpy_s_numbers_do_not_end_up_in_a_checkpoint(original, tmp_path):
    """A schedule that computes with NumPy leaves its scalars in the optimisers."""
    model = make_agent(original, make_env(original))
    model.lr_schedule = lambda progress: np.float64(1e-3) * progress
    model.learn(60)
    path = save_checkpoint(model, tmp_path)
    rates = [g["lr"] for o in read_tensors(path / "agent.pt")["optimizers"].values() for g in o["param_groups"]]
    assert len(rates) == 3 and {type(rate) for rate in rates} == {float}
    other = make_agent(original, make_env(original))
    load_checkpoint(other, path)
    for a, b in zip(model.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_checkpoint_made_on_a_gpu_loads_on_a_cpu_and_the_other_way_round(configured, tmp_path):
    models, paths = {}, {}
    for device in ("cuda", "cpu"):
        config = configured(tmp_path / device, "pointcloud", device=device)
        models[device] = make_agent(config, make_env(config))
        models[device].learn(60)
        (tmp_path / device).mkdir()
        paths[device] = save_checkpoint(models[device], tmp_path / device)
    for device, other in (("cpu", "cuda"), ("cuda", "cpu")):
        load_checkpoint(models[device], paths[other])
        models[device].learn(10, reset_num_timesteps=False)
        assert models[device].num_timesteps == 70
