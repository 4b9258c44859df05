"""Short real trainings: run directories, resuming, and what is refused."""

import dataclasses
import json
import shlex
import subprocess
import sys

import numpy as np
import pytest
import torch

from agents import runs
from agents.config.command import command
from agents.config.file import to_json
from agents.config.presets import PRESETS
from agents.methods.shaped_sac import make_agent
from agents.runs.checkpoint import list_checkpoints
from agents.runs.log import read_progress
from agents.tasks import make_env
from agents.train import main, parse, train


def weights(directory, step):
    checkpoint = directory / runs.CHECKPOINTS / f"step-{step:09d}" / "agent.pt"
    return torch.load(checkpoint, weights_only=True)["policy"]


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_a_run_leaves_what_it_promises_and_its_policy_acts_without_an_environment(small, obs):
    config = small(obs)
    result = train(config)
    directory = config.out
    for name in ("config.json", "revision.txt", "progress.csv", "policy.pt", "best.pt", "result.json"):
        assert (directory / name).is_file(), name
    assert list(directory.glob("events.*"))
    assert [c.name for c in list_checkpoints(directory / runs.CHECKPOINTS)] == ["step-000000100", "step-000000200"]
    assert json.loads((directory / "result.json").read_text())["environment_steps"] == 200
    assert result["episodes"] == 1
    rows = (directory / "progress.csv").read_text().splitlines()
    assert "eval/success_rate" in rows[0] and len(rows) >= 3
    policy, stored = runs.load_policy(directory)
    assert stored == config
    shape = {"state": (8,), "pointcloud": (20, 4)}[obs]
    observations = np.random.default_rng(0).normal(0, 0.1, (5, *shape)).astype(np.float32)
    together, _ = policy.predict(observations, deterministic=True)
    alone = [policy.predict(o, deterministic=True)[0] for o in observations]
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.slow
def test_evaluating_does_not_change_what_is_learned(small, tmp_path):
    often = small(out=tmp_path / "often")
    often = dataclasses.replace(often, evaluation=dataclasses.replace(often.evaluation, every=20))
    train(often)
    train(small(out=tmp_path / "seldom"))
    a, b = weights(tmp_path / "often", 200), weights(tmp_path / "seldom", 200)
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_the_estimator_stays_what_it_was_and_a_frozen_encoder_too(small):
    config = small("pointcloud")
    env = make_env(config)
    model = make_agent(config, env)
    before = model.replay_buffer.potential.fingerprint()
    encoder = {k: v.clone() for k, v in model.actor.features_extractor.state_dict().items()}
    model.learn(120)
    assert model.replay_buffer.potential.fingerprint() == before
    after = model.actor.features_extractor.state_dict()
    assert all(torch.equal(encoder[name], after[name]) for name in encoder)
    features = model.actor.features_extractor(torch.from_numpy(model.replay_buffer.observations[:50, 0]))
    torch.testing.assert_close(torch.from_numpy(model.replay_buffer.features[:50, 0]), features, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("training", ["finetuned", "scratch"])
def test_a_trained_encoder_learns(small, training):
    config = small("pointcloud")
    learner = dataclasses.replace(config.learner, encoder_training=training)
    model = make_agent(dataclasses.replace(config, learner=learner), make_env(config))
    encoder = {k: v.clone() for k, v in model.actor.features_extractor.state_dict().items()}
    model.learn(80)
    after = model.actor.features_extractor.state_dict()
    assert all(not torch.equal(encoder[name], after[name]) for name in encoder if "weight" in name)
    assert model.actor.features_extractor is model.critic.features_extractor


def test_a_resumed_run_takes_more_steps_and_no_other_change(small, capsys):
    run = small(steps=60)
    train(run)
    assert parse(["--resume", str(run.out)]).steps == 60
    main(["--resume", str(run.out), "--steps", "80"])
    assert json.loads((run.out / "result.json").read_text())["environment_steps"] == 80
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["--resume", str(run.out), "--learner.batch-size", "64", "--seed", "1", "--steps", "90"])
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "only --steps may be changed: --seed is 0 there, not 1; --learner.batch-size is 32 there, not 64" in error


def test_an_existing_run_is_not_overwritten(small):
    config = small()
    config.out.mkdir()
    (config.out / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"choose another --out; it cannot .*: .* has no config\.json"):
        train(config)
    (config.out / "config.json").write_text(to_json(config))
    with pytest.raises(FileExistsError, match="--resume"):
        train(config)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--method", "magic"], "unknown method 'magic'; known methods: buffer+potential+annealing"),
        (["--encoder", "magic"], "unknown encoder 'magic'; registered encoders: "),
        (["--estimator", "nowhere.pt"], "nowhere.pt: no such file"),
        (["--demonstrations", "nowhere.hdf5"], "nowhere.hdf5"),
        (["--resume", "nowhere"], "nowhere is not a run directory"),
        (["--steps", "0"], "--steps is 0"),
        (["--learner.buffer-size", "1000000000", "--steps", "1000000000"], "lower --learner.buffer-size to at most "),
        (["--device", "tpu"], "--device tpu: not available here; choose from cpu"),
        (["--learner.precision", "int4"], "precision 'int4': this cpu offers float32"),
        pytest.param(
            ["--device", "cuda"],
            "--device cuda: not available here; choose from cpu, auto",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(arguments, message, files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["--estimator", str(files["state"]), "--demonstrations", str(files["demonstrations"])]
    given += [] if "--device" in arguments else ["--device", "cpu"]
    with pytest.raises(SystemExit) as stop:
        main([*given, *arguments])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not list(tmp_path.glob("runs/*"))


def test_an_estimator_for_another_observation_or_encoder_is_refused(small, files):
    with pytest.raises(ValueError, match="made for 'pointcloud'"):
        train(small("state", estimator=files["pointcloud"]))


@pytest.mark.parametrize("training", ["frozen", "finetuned"])
def test_an_encoder_that_the_estimator_does_not_have_is_refused_before_anything_is_built(small, training, monkeypatch):
    """The default settings take the encoder from the estimator."""
    monkeypatch.setattr("agents.train.make_env", None)
    config = small("pointcloud", encoder="mlp")
    config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, encoder_training=training))
    with pytest.raises(
        ValueError, match=rf"{training}: .* made with encoder 'pointnet', not 'mlp'; choose scratch .*, or"
    ):
        train(config)
    assert not config.out.exists()
    with pytest.raises(ValueError, match="made with encoder 'pointnet', not 'mlp'"):
        make_agent(config, make_env(config))


def test_the_log_tells_how_many_of_the_training_s_steps_were_guided(small, capsys):
    """A success rate of episodes with guided steps is not the agent's."""
    base = small(steps=320)
    learner = dataclasses.replace(base.learner, guided_share=0.25, learning_starts=10**6)
    train(dataclasses.replace(base, learner=learner))
    assert (
        "goal policy acts in 25% of the training steps, from step 4000 on in fewer, from 8000 on in none: rollout/*"
        in capsys.readouterr().out
    )
    shares = [
        row["rollout/guided_share"] for row in read_progress(base.out / "progress.csv") if "rollout/guided_share" in row
    ]
    assert shares and np.mean(shares) == pytest.approx(0.25, abs=0.08)


def test_without_a_guide_nothing_is_said_of_it(small, capsys):
    train(small(steps=60, method="buffer"))
    assert "goal policy" not in capsys.readouterr().out
    assert "guided" not in (small().out / "progress.csv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "obs, missing",
    [("state", ["open3d"]), ("pointcloud", ["torch_cluster", "torch_scatter", "torch_sparse", "pyg_lib"])],
)
def test_training_does_without_what_it_does_not_need(obs, missing, tmp_path, files):
    code = f"""
import sys
sys.modules |= dict.fromkeys({missing})
from agents.train import main
main(["--obs", {obs!r}, "--out", {str(tmp_path / "run")!r}, "--steps", "60", "--estimator", {str(files[obs])!r},
      "--demonstrations", {str(files["demonstrations"])!r}, "--learner.learning-starts", "20",
      "--evaluation.episodes", "1", "--evaluation.final-episodes", "1"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("training", ["frozen", "finetuned"])
def test_a_batch_of_one_trains(small, training):
    config = small("pointcloud", steps=60)
    learner = dataclasses.replace(config.learner, batch_size=1, learning_starts=20, encoder_training=training)
    model = make_agent(dataclasses.replace(config, learner=learner), make_env(config))
    before = model.actor.mu.weight.clone()
    model.learn(40)
    assert torch.isfinite(model.actor.mu.weight).all() and not torch.equal(model.actor.mu.weight, before)


def test_logged_returns_are_those_of_the_task(small):
    """The shaped reward is in the batches alone."""
    config = small(steps=320)
    learner = dataclasses.replace(config.learner, learning_starts=1000)
    model = make_agent(dataclasses.replace(config, learner=learner), make_env(config))
    model.learn(320)
    assert len(model.ep_info_buffer) >= 2
    for episode, success in zip(model.ep_info_buffer, model.ep_success_buffer, strict=True):
        assert episode["r"] == float(success)
    assert ((model.replay_buffer.sample(200).rewards % 1) != 0).any()


@pytest.mark.parametrize(
    "line",
    [
        "--obs state --seed 3",
        "--obs pointcloud --seed 0 --preset paper --steps 7 --learner.net-arch 8 8 --learner.no-backup-entropy",
        "--obs state --seed 1 --learner.backup-entropy --learner.gamma 0.9 --demonstrations 'a b.hdf5'",
    ],
)
def test_a_result_tells_the_command_that_trains_so(line):
    config = parse(shlex.split(line))
    assert parse(shlex.split(command(config))[3:]) == config


def test_the_last_of_two_presets_counts():
    assert parse(["--preset", "default", "--preset", "paper"]) == PRESETS["paper"]["state"]


def test_a_training_without_an_update_says_so(small, capsys):
    train(small(steps=20))
    assert "nothing is learned: --steps 20, --learner.learning-starts 50" in capsys.readouterr().out


def test_another_discount_than_the_estimator_s_is_refused(small):
    config = small()
    changed = dataclasses.replace(config, learner=dataclasses.replace(config.learner, gamma=0.9))
    with pytest.raises(ValueError, match=r"gamma is 0.9, but the estimator counts steps by 0.99"):
        make_agent(changed, make_env(changed))
