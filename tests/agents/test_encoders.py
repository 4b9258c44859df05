"""Every encoder of clouds in a policy and in a prior: which estimator it starts from, training, loading and export."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import assets
from agents import runs
from agents.config import TrainConfig
from agents.config.file import to_json
from agents.export import main as export
from agents.methods.encoder import check_encoder
from agents.methods.potential import load_estimator
from agents.prior.config import PretrainConfig
from agents.runs.policy import policy_weights
from agents.sac.policy import SharedEncoderPolicy, policy_settings
from agents.tasks import get_task, register_task, registry
from agents.tasks.push import by_encoder
from agents.train import train
from envs.demonstrations import load_demonstrations
from shaping.tensors import write_tensors
from shaping.value import ValueEstimator

ENCODERS = ("pointnet", "pointnet2", "dgcnn", "set_transformer")


def estimator(path: Path, encoder: str) -> Path:
    torch.manual_seed(0)
    ValueEstimator("pointcloud", encoder).save(path)
    return path


@pytest.fixture
def task(tmp_path):
    """The slot task with estimators of two encoders."""
    first, second = tmp_path / "prior.pt", tmp_path / "prior-dgcnn.pt"
    estimator(first, "pointnet")
    estimator(second, "dgcnn")
    slot = get_task("push-slot")
    view = dataclasses.replace(slot.view("pointcloud"), estimator=first, estimators=by_encoder(first))
    register_task("two-priors", dataclasses.replace(slot, views={"pointcloud": view}))
    yield "two-priors"
    del registry._TASKS["two-priors"]


def test_the_estimator_is_that_of_the_encoder(task):
    config = TrainConfig(task=task, obs="pointcloud")
    for encoder, expected in (("dgcnn", "dgcnn"), ("pointnet", "pointnet"), (None, "pointnet")):
        chosen = dataclasses.replace(config, encoder=encoder)
        assert load_estimator(chosen).config["encoder"] == expected
        check_encoder(chosen)


def test_an_encoder_without_an_estimator_is_told_how_to_get_one(task):
    config = TrainConfig(task=task, obs="pointcloud", encoder="set_transformer")
    said = (
        "made with encoder 'pointnet', not 'set_transformer'; choose scratch .*, or an --estimator that agents.pretrain"
    )
    with pytest.raises(ValueError, match=said):
        check_encoder(config)
    scratch = dataclasses.replace(config, learner=dataclasses.replace(config.learner, encoder_training="scratch"))
    check_encoder(scratch)  # Φ is then that of the default encoder's estimator
    assert load_estimator(scratch).config["encoder"] == "pointnet"


def test_a_file_is_named_after_its_encoder():
    """As the task finds those that are shipped."""
    names = {
        None: "push-plane-pointcloud.pt",
        "pointnet": "push-plane-pointcloud.pt",
        "dgcnn": "push-plane-pointcloud-dgcnn.pt",
    }
    for encoder, name in names.items():
        assert PretrainConfig(obs="pointcloud", encoder=encoder).file == Path("estimators") / name
    shipped = get_task("push-slot").view("pointcloud")
    for encoder, path in shipped.estimators.items():
        assert ValueEstimator.load(path).config["encoder"] == encoder


def untrained(directory: Path, encoder: str) -> Path:
    """A run directory with a policy of random weights."""
    config, task = TrainConfig(obs="pointcloud", encoder=encoder), get_task("push-slot")
    torch.manual_seed(0)
    settings = policy_settings(encoder, config.learner.net_arch)
    policy = SharedEncoderPolicy(task.view("pointcloud").space, task.action_space, lambda _: 0.0, **settings)
    directory.mkdir()
    (directory / "config.json").write_text(to_json(config))
    write_tensors(directory / "policy.pt", policy_weights(policy.actor))
    return directory


@pytest.mark.filterwarnings("ignore:`torch.jit.load` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_policy_is_loaded_and_exported(encoder, tmp_path):
    """Its TorchScript acts alike on recorded clouds."""
    run = untrained(tmp_path / "run", encoder)
    policy, _ = runs.load_policy(run)
    (recorded,) = load_demonstrations(assets.path("demonstrations/push-slot-1.hdf5"), "pointcloud")
    clouds = recorded.observations["pointcloud"].astype(np.float32)
    expected, _ = policy.predict(clouds, deterministic=True)
    assert expected.std(axis=0).min() > 1e-3
    export([str(run), "--out", str(tmp_path / "agent.pt")])
    actions = torch.jit.load(tmp_path / "agent.pt")(torch.from_numpy(clouds)).detach().numpy()
    np.testing.assert_allclose(actions, expected, atol=2e-6)
    assert json.loads((tmp_path / "agent.json").read_text())["encoder"] == encoder


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ENCODERS[1:])
def test_a_policy_is_exported_to_onnx(encoder, tmp_path):
    export([str(untrained(tmp_path / "run", encoder)), "--format", "onnx", "--out", str(tmp_path / "agent.onnx")])
    assert (tmp_path / "agent.onnx").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("training", ["frozen", "finetuned"])
def test_a_training_with_an_encoder_of_neighbourhoods(small, tmp_path, training):
    """300 steps with everything that a default training has: prior, Φ, guide, demonstrations."""
    config = small("pointcloud", encoder="pointnet2", steps=300, estimator=estimator(tmp_path / "p.pt", "pointnet2"))
    learner = dataclasses.replace(config.learner, encoder_training=training)
    result = train(dataclasses.replace(config, learner=learner))
    assert result["environment_steps"] == 300
    policy, stored = runs.load_policy(config.out)
    before, after = (
        dict(owner.named_parameters())["local.local_nn.lins.0.weight"]
        for owner in (ValueEstimator.load(config.estimator).encoder, policy.actor.features_extractor.encoder)
    )
    assert stored.encoder == "pointnet2" and torch.equal(before, after) == (training == "frozen")
