"""The prior: a short real pre-training, and what its calibration measures."""

import dataclasses
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from agents.config.file import to_json
from agents.pretrain import learn, main, parse
from agents.pretrain_offline import main as offline
from agents.prior.calibration import Calibration
from agents.prior.config import GoalLearnerConfig, PretrainConfig, stored_config
from agents.prior.episodes import load_episodes
from agents.prior.learner import make_goal_learner, make_play
from agents.prior.value_head import to_estimator
from agents.replay.hindsight import HindsightReplayBuffer
from agents.runs.lock import locked
from tests.agents.one_line import one_line


def test_a_value_that_counts_steps_is_calibrated_and_another_is_not():
    remaining = np.tile(np.arange(1, 30), 4)
    good = Calibration(1.0, 0.99**remaining, remaining, 0.99)
    assert good.worst_error == pytest.approx(0.0, abs=1e-12) and good.rank_correlation == pytest.approx(1.0)
    flat = Calibration(1.0, np.full(len(remaining), 0.99), remaining, 0.99)
    assert flat.worst_error > 0.05
    assert sum(row["count"] for row in good.table()) == len(remaining)


def short(out, obs="state", steps=200, **settings):
    learner = dataclasses.replace(PretrainConfig().learner, learning_starts=100, batch_size=32)
    return PretrainConfig(obs, steps=steps, out=out, learner=learner, evaluate_every=150, **settings)


@pytest.mark.slow
def test_a_resumed_pre_training_ends_where_an_uninterrupted_one_does(tmp_path):
    whole, _ = (
        learn(short(tmp_path / "whole.pt", "pointcloud")),
        learn(short(tmp_path / "parts.pt", "pointcloud", steps=150)),
    )
    partial = tmp_path / "parts.partial"
    with pytest.raises(FileExistsError, match=f"continue with --resume {partial}"):
        learn(short(tmp_path / "parts.pt", "pointcloud"))
    with pytest.raises(ValueError, match=r"only --steps may be changed: --seed is 0 there, not 1$"):
        learn(short(tmp_path / "parts.pt", "pointcloud", seed=1, resume=partial))
    resumed = learn(short(tmp_path / "parts.pt", "pointcloud", resume=partial))
    for a, b in zip(whole.policy.parameters(), resumed.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(whole.replay_buffer.sample(64), resumed.replay_buffer.sample(64), strict=True):
        assert a is b is None or torch.equal(a, b)


@pytest.mark.slow
def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path, capsys):
    learn(short(tmp_path / "parts.pt", steps=300))
    newest = tmp_path / "parts.partial" / "step-000000300" / "agent.pt"
    newest.write_bytes(newest.read_bytes()[:1000])
    resumed = learn(short(tmp_path / "parts.pt", steps=300, resume=tmp_path / "parts.partial"))
    printed = capsys.readouterr().out
    assert resumed.num_timesteps == 300
    assert "step-000000300 is damaged" in printed and "at step 150" in printed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_between_two_steps(number, tmp_path, monkeypatch, capsys):
    def stopped(*settings):
        os.kill(os.getpid(), number)
        return sample(*settings)

    sample = HindsightReplayBuffer.sample
    monkeypatch.setattr(HindsightReplayBuffer, "sample", stopped)
    with pytest.raises(SystemExit) as stop:
        learn(short(tmp_path / "one.pt"))
    assert stop.value.code == 130 and "stopped at step 101; continue" in capsys.readouterr().out
    assert (tmp_path / "one.partial" / "step-000000101").is_dir()


def test_nothing_to_resume_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        learn(short(tmp_path / "none.pt", resume=tmp_path / "none.partial"))
    with pytest.raises(
        FileNotFoundError, match=r"none\.partial holds no pre-training to resume: it has no config\.json"
    ):
        parse(["--resume", str(tmp_path / "none.partial")])
    assert not list(tmp_path.iterdir())


def test_the_directory_is_all_that_a_resume_needs(tmp_path, monkeypatch, capsys):
    """Of its configuration --steps may change; it may lie elsewhere now, and the estimator will lie beside it."""
    made = short(tmp_path / "parts-0.1", steps=150)
    learn(made)
    (tmp_path / "parts-0.1.partial").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    for directory, out in (
        (tmp_path / "moved", made.out),
        (Path(), made.out),
        (Path("../moved"), Path("../parts-0.1")),
    ):
        expected = dataclasses.replace(made, resume=directory, out=out)
        assert parse(["--resume", str(directory)]) == expected
        assert parse([f"--resume={directory}", "--steps", "170"]) == dataclasses.replace(expected, steps=170)
        assert expected.partial.samefile(tmp_path / "moved")
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(
            ["--resume", str(tmp_path / "moved"), "--obs", "pointcloud", "--learner.batch-size", "64", "--steps", "170"]
        )
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1
    assert "changed: --obs is state there, not pointcloud; --learner.batch-size is 32 there, not 64" in error
    with pytest.raises(ValueError, match=r"--steps is 100, but .*moved has 150 already"):
        learn(dataclasses.replace(parse(["--resume", str(tmp_path / "moved")]), steps=100))


def test_a_configuration_that_does_not_tell_the_file_s_name_gives_that_of_the_directory(tmp_path):
    """As earlier versions wrote it."""
    config = PretrainConfig(out=tmp_path / "a.pt", seed=3)
    config.partial.mkdir()
    stored = json.loads(to_json(config))
    del stored["out"], stored["resume"]
    (config.partial / "config.json").write_text(json.dumps(stored))
    assert stored_config(config.partial) == config


def test_a_stored_configuration_that_is_damaged_is_named(tmp_path):
    path = tmp_path / "config.json"
    for text in ("{", '{"steps": "many"}', '{"learner": {"ent_coef": "auto0"}}', '{"magic": 1}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"^{path}: ") as refused:
            stored_config(tmp_path)
        assert "\n" not in str(refused.value)


def test_one_process_makes_an_estimator(tmp_path):
    with (
        locked(tmp_path / "one.partial"),
        pytest.raises(ValueError, match=r"another process is training in .*one\.partial"),
    ):
        learn(short(tmp_path / "one.pt"))


def test_a_number_that_is_not_finite_stops_it_with_a_report(tmp_path, monkeypatch):
    def poisoned(*settings):
        batch = sample(*settings)
        return batch._replace(rewards=batch.rewards * np.nan)

    sample = HindsightReplayBuffer.sample
    monkeypatch.setattr(HindsightReplayBuffer, "sample", poisoned)
    with pytest.raises(ValueError, match=r"^critic loss is nan in step 101, .* of the training; .*npz shows") as raised:
        learn(short(tmp_path / "one.pt"))
    (path,) = (tmp_path / "one.partial").glob("not-finite-*.npz")
    assert str(path) in str(raised.value)
    with np.load(path, allow_pickle=False) as file:
        assert file["step"] == 101 and np.isfinite(file["next_observation"]).all()
        assert any(name.startswith("weights/critic") for name in file)


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_the_estimator_has_the_goal_policy_of_its_learner(obs):
    config = PretrainConfig(obs=obs, steps=150)
    learner = dataclasses.replace(config.learner, learning_starts=100, batch_size=32, value_steps=20)
    config = dataclasses.replace(config, learner=learner)
    env = make_play(config)
    model = make_goal_learner(config, env)
    model.learn(150)
    estimator = to_estimator(model, config)
    observations, _ = zip(*(env.reset(seed=seed) for seed in range(4)), strict=True)
    expected, _ = model.predict(np.array(observations), deterministic=True)
    with torch.no_grad():
        found = estimator.act(torch.from_numpy(np.array(observations)))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert estimator.goal_speed == 0.05


def test_files_beside_an_estimator_keep_its_whole_name(tmp_path):
    names = [PretrainConfig(out=tmp_path / name).beside(".json").name for name in ("a.pt", "a-0.1", "a-0.2")]
    assert names == ["a.json", "a-0.1.json", "a-0.2.json"]


@pytest.mark.parametrize("value", ["auto0.02", "1e999", "auto_1e999"])
def test_a_temperature_that_is_none_is_refused(tmp_path, value):
    config = PretrainConfig(out=tmp_path / "a.pt", learner=GoalLearnerConfig(ent_coef=value))
    with pytest.raises(ValueError, match=f"--learner.ent-coef is '{value}'"):
        learn(config)
    assert not list(tmp_path.iterdir())


def test_the_episodes_of_a_pre_training_are_recorded_for_one_without_an_environment(tmp_path, capsys):
    config = short(tmp_path / "online.pt", steps=120, record_play=tmp_path / "play.npz")
    model = learn(config)
    episodes = load_episodes(tmp_path / "play.npz", "state")
    rows = model.replay_buffer.filled()
    np.testing.assert_array_equal(np.concatenate([e.observations[:-1] for e in episodes]), rows["observations"][:, 0])
    np.testing.assert_array_equal(np.concatenate([e.actions for e in episodes]), rows["actions"][:, 0])
    with pytest.raises(FileExistsError, match=r"play\.npz exists; move it away, or choose another --record-play"):
        learn(dataclasses.replace(config, out=tmp_path / "other.pt"))
    learn(dataclasses.replace(config, resume=config.partial))  # writes the same again

    capsys.readouterr()
    given = ["--data", str(tmp_path / "play.npz"), "--out", str(tmp_path / "offline.pt")]
    error = one_line(offline, [*given, "--obs", "pointcloud"], capsys)
    assert error.startswith(f"error: {tmp_path / 'play.npz'}: demo_0 lacks 'pointcloud' or its actions; it has state")
    assert "--learner.cloning is -1" in one_line(offline, [*given, "--learner.cloning", "-1"], capsys)
    (tmp_path / "offline.pt").touch()
    assert "offline.pt exists; move it away, or choose another --out" in one_line(offline, given, capsys)
