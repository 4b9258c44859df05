"""A small file that names large networks is refused before they are built."""

import dataclasses
import json
import resource

import psutil
import pytest
import torch

from agents import runs
from agents.config.file import to_json
from agents.config.train import TrainConfig
from agents.evaluate import main as evaluate
from agents.methods.memory import check_memory, network_bytes
from agents.methods.shaped_sac import make_agent
from agents.runs.checkpoint import list_checkpoints
from agents.tasks import make_env
from agents.train import main as resume
from shaping.tensors import read_tensors, write_tensors
from shaping.value import ValueEstimator
from tests.agents.one_line import one_line

HUGE = [8192] * 16


@pytest.fixture
def run(configured, crash, tmp_path):
    """A run that stopped at step 35, with a checkpoint at 30 and a policy."""
    config = configured(tmp_path / "run", steps=40, checkpoint_every=30)
    crash(config, 35)
    (checkpoint,) = list_checkpoints(config.out / runs.CHECKPOINTS)
    weights = read_tensors(checkpoint / "agent.pt")["policy"]
    write_tensors(config.out / runs.POLICY, {k: v for k, v in weights.items() if k.startswith("actor.")})
    return config.out


@pytest.fixture
def little_memory():
    """This process gets 1 GiB more address space than it has, of which networks of 20 GB would fail."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def configure(run, layers):
    settings = json.loads((run / "config.json").read_text())
    settings["learner"]["net_arch"] = layers
    (run / "config.json").write_text(json.dumps(settings))


@pytest.mark.parametrize("layers", [HUGE, [32, 8192], [32, 32, 8192], [8192], [32], []], ids=str)
def test_a_configuration_of_other_networks_than_the_weights(run, layers, little_memory, capsys):
    configure(run, layers)
    for command, arguments in ((evaluate, [str(run)]), (resume, ["--resume", str(run)])):
        error = one_line(command, arguments, capsys)
        assert f"{run / 'config.json'}: learner.net_arch is {layers}, but weights do not fit" in error


def test_weights_that_are_one_number_named_a_large_layer(run, little_memory, capsys):
    configure(run, HUGE)
    one = torch.zeros(1)
    layers = {f"actor.latent_pi.{2 * i}.weight": one.expand(8192, 8192 if i else 8) for i in range(16)}
    write_tensors(run / runs.POLICY, read_tensors(run / runs.POLICY) | layers)
    assert f"{run / runs.POLICY}: weights do not fit" in one_line(evaluate, [str(run)], capsys)


def test_networks_that_do_not_fit_the_memory(monkeypatch):
    """Where nothing lies on the disk yet."""
    monkeypatch.setattr("agents.methods.memory.available_memory", lambda: 50_000_000_000)
    learner = dataclasses.replace(TrainConfig().learner, net_arch=tuple(HUGE))
    with pytest.raises(ValueError, match=r"needs 56\.37 GB, and 50\.00 GB are free; lower --learner\.net-arch"):
        check_memory(TrainConfig(learner=learner))


def test_the_memory_of_networks_is_what_learning_takes(configured, tmp_path):
    config = configured(tmp_path / "run")
    model = make_agent(config, make_env(config))
    model.learn(60)
    hidden = {f"{name}.2.weight" for name in ("actor.latent_pi", "critic.qf0", "critic.qf1")}
    learned = [tensor for name, tensor in model.policy.named_parameters() if name in hidden]
    moments = [o.state[p] for o in (model.actor.optimizer, model.critic.optimizer) for p in learned if p in o.state]
    targets = [t for n, t in model.policy.named_parameters() if n in {f"critic_target.qf{i}.2.weight" for i in (0, 1)}]
    held = [*learned, *(p.grad for p in learned), *(m[k] for m in moments for k in ("exp_avg", "exp_avg_sq")), *targets]
    assert network_bytes(config) == sum(tensor.nbytes for tensor in held)


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden": HUGE},
        {"action_dim": 10**9},
        {"encoder_kwargs": {"layers": [10**6, 10**6]}},
        {"encoder_kwargs": {"out_features": 10**9}},
        {"encoder_kwargs": {"out_features": 10**18}},
        {"encoder": "mlp", "encoder_kwargs": {"hidden": 10**9}},
    ],
    ids=str,
)
def test_an_estimator_larger_than_its_file(files, settings, tmp_path, little_memory):
    content = torch.load(files["pointcloud"], weights_only=True)
    content["config"] |= settings
    torch.save(content, tmp_path / "huge.pt")
    with pytest.raises(ValueError, match=f"^{tmp_path / 'huge.pt'}: its configuration does not make an estimator"):
        ValueEstimator.load(tmp_path / "huge.pt")


def test_a_configuration_alone_is_no_run(tmp_path, capsys):
    config = dataclasses.replace(TrainConfig(), learner=dataclasses.replace(TrainConfig().learner, net_arch=(8192,)))
    (tmp_path / "config.json").write_text(to_json(config))
    assert "holds no policy" in one_line(evaluate, [str(tmp_path)], capsys)
