"""The written-out gradient step is Stable-Baselines3's, and autograd's where the paper departs from it."""

from copy import deepcopy

import pytest
import torch
from stable_baselines3 import SAC as StockSAC
from stable_baselines3.common.logger import Logger
from torch import nn
from torch.nn.utils import parametrizations

from agents.replay.buffer import Batch
from agents.sac.algorithm import SAC
from agents.sac.averaging import MovingAverage
from agents.sac.device import resolve_precision
from agents.sac.fast.update import Update, is_supported
from agents.sac.policy import EncoderExtractor, SharedEncoderPolicy
from tests.agents.sac.batches import GivenBatches, Walk, make_batches

SHAPES = {"state": (8,), "pointnet": (20, 4)}
PAPER = {"target_bounds": (-0.1, 0.1), "backup_entropy": False, "annealing_steps": 100}


def make_agent(encoder: str = "state", *, seed: int = 0, net_arch=(32, 24), policy_kwargs=None, **kwargs) -> SAC:
    extractor = {
        "features_extractor_class": EncoderExtractor,
        "features_extractor_kwargs": {"encoder": encoder},
        "net_arch": list(net_arch),
    }
    policy_kwargs = extractor | (policy_kwargs or {})
    agent = SAC(
        SharedEncoderPolicy, Walk(SHAPES[encoder]), policy_kwargs=policy_kwargs, seed=seed, buffer_size=10, **kwargs
    )
    agent.num_timesteps = 50  # halfway through annealing
    return agent


def take(gradient_step, agent: SAC, batches: list[Batch]) -> list[dict[str, float]]:
    """Take gradient steps as `SAC.train` does."""
    logs = []
    for batch in batches:
        logs.append(gradient_step(batch))
        MovingAverage(agent.critic_target, agent.critic, agent.tau).step()
    return logs


def weights(agent: StockSAC) -> dict[str, torch.Tensor]:
    found = dict(agent.policy.state_dict())
    if agent.ent_coef_optimizer is not None:
        found["log_ent_coef"] = agent.log_ent_coef.detach()
    for name in ("actor", "critic"):
        states = getattr(agent, name).optimizer.state_dict()["state"]
        found |= {f"{name} {index} {key}": value for index, state in states.items() for key, value in state.items()}
    return {name: value.clone() for name, value in found.items()}


def assert_close(found: dict, expected: dict, tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name] - value).abs().max() <= tolerance, name


@pytest.mark.parametrize("ent_coef", ["auto_0.1", 0.2])
@pytest.mark.parametrize("steps", [1, 5])
def test_updates_are_stable_baselines3s(ent_coef, steps):
    common = {
        "env": Walk(),
        "ent_coef": ent_coef,
        "policy_kwargs": {"net_arch": [64, 64]},
        "buffer_size": 10,
        "seed": 3,
    }
    stock = StockSAC("MlpPolicy", replay_buffer_class=GivenBatches, **common)
    stock.set_logger(Logger(None, []))
    agent = SAC("MlpPolicy", **common)
    assert_close(weights(agent), weights(stock), 0)
    start = weights(agent)

    batches = make_batches(steps)
    stock.replay_buffer.batches = list(batches)
    torch.manual_seed(5)
    stock.train(steps, 64)
    torch.manual_seed(5)
    take(Update(agent), agent, batches)

    assert_close(weights(agent), weights(stock), 1e-5)
    moved = [name for name, value in weights(agent).items() if name not in start or (value != start[name]).any()]
    assert len(moved) == len(weights(agent)), "every parameter is trained"


CASES = {
    "states": ("state", {}),
    "clipped targets, no entropy in them, annealed": ("state", PAPER),
    "near the stored actions": ("state", {"cloning": 0.3}),
    "trained encoder": ("pointnet", PAPER),
    "frozen encoder": ("pointnet", {"policy_kwargs": {"frozen": True}}),
    "one hidden layer": ("state", {"net_arch": (16,)}),
    "three hidden layers, three critics": ("state", {"net_arch": (80, 16, 24), "policy_kwargs": {"n_critics": 3}}),
}


@pytest.mark.parametrize("case", CASES)
def test_updates_are_autograds(case):
    encoder, kwargs = CASES[case]
    agents = [make_agent(encoder, **kwargs) for _ in range(2)]
    for agent in agents:  # one of the two standard deviations beyond its clamp for some rows
        with torch.no_grad():
            agent.actor.log_std.bias[0] = 1.98
    logs = []
    for gradient_step, agent in zip((agents[0].update, Update(agents[1])), agents, strict=True):
        torch.manual_seed(5)
        logs.append(take(gradient_step, agent, make_batches(3, SHAPES[encoder])))
    assert_close(weights(agents[1]), weights(agents[0]), 1e-5)
    for expected, found in zip(*logs, strict=True):
        assert found == pytest.approx(expected, abs=1e-5)


def test_stored_features_replace_the_encoder():
    agents = [make_agent("pointnet", policy_kwargs={"frozen": True}) for _ in range(2)]
    batches = make_batches(2, SHAPES["pointnet"])
    with torch.no_grad():
        encode = agents[0].actor.features_extractor
        stored = [
            b._replace(features=encode(b.observations), next_features=encode(b.next_observations)) for b in batches
        ]
    for agent, given in zip(agents, (batches, stored), strict=True):
        torch.manual_seed(5)
        take(Update(agent), agent, given)
    assert_close(weights(agents[1]), weights(agents[0]), 1e-6)


@pytest.mark.parametrize("encoder", SHAPES)
def test_fifty_updates_stay_with_autograd(encoder):
    agents = [make_agent(encoder, **PAPER) for _ in range(2)]
    for gradient_step, agent in zip((agents[0].update, Update(agents[1])), agents, strict=True):
        torch.manual_seed(5)
        take(gradient_step, agent, make_batches(50, SHAPES[encoder]))
    assert_close(weights(agents[1]), weights(agents[0]), 1e-4)


@pytest.mark.parametrize("encoder", SHAPES)
def test_continuing_from_a_file_changes_nothing(encoder, tmp_path):
    batches = make_batches(6, SHAPES[encoder])
    agent = make_agent(encoder, **PAPER)
    torch.manual_seed(5)
    take(Update(agent), agent, batches[:3])
    agent.save(tmp_path / "agent.zip")
    loaded = SAC.load(tmp_path / "agent.zip", Walk(SHAPES[encoder]))
    for each in (agent, loaded):
        torch.manual_seed(6)
        take(Update(each), each, batches[3:])
    assert_close(weights(loaded), weights(agent), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("encoder", SHAPES)
def test_weights_that_are_loaded_later_are_used(encoder, dtype):
    """An update that has run already goes on from other weights and moments as a new one does."""
    batches = make_batches(6, SHAPES[encoder])
    source, used, fresh = (make_agent(encoder, seed=seed, **PAPER) for seed in (0, 1, 2))
    for agent in (source, used):
        update = Update(agent, dtype)
        take(update, agent, batches[:3])
    for agent in (used, fresh):
        agent.policy.load_state_dict(source.policy.state_dict())
        agent.log_ent_coef.data.copy_(source.log_ent_coef)
        for name in ("actor", "critic"):
            getattr(agent, name).optimizer.load_state_dict(deepcopy(getattr(source, name).optimizer.state_dict()))
        agent.ent_coef_optimizer.load_state_dict(deepcopy(source.ent_coef_optimizer.state_dict()))
    for gradient_step, agent in ((update, used), (Update(fresh, dtype), fresh)):
        torch.manual_seed(6)
        take(gradient_step, agent, batches[3:])
    assert_close(weights(used), weights(fresh), 0)


def test_a_part_of_the_encoder_that_is_frozen_later_stays():
    agent = make_agent("pointnet", learning_starts=5, batch_size=16)
    agent.learn(8)
    first, *others = agent.actor.features_extractor.encoder.parameters()
    first.requires_grad_(False)
    before = [p.clone() for p in (first, *others)]
    agent.learn(8)
    assert [torch.equal(a, b) for a, b in zip(before, (first, *others), strict=True)] == [True] + [False] * len(others)


def spectral(encoder):
    parametrizations.spectral_norm(encoder.project[1])


def without_bias(encoder):
    encoder.project[2] = nn.LayerNorm(64, bias=False)


@pytest.mark.parametrize("change", [spectral, without_bias])
def test_an_encoder_with_another_layer_is_left_to_autograd(change):
    agents = []
    for _ in range(2):
        torch.manual_seed(5)
        agent = make_agent("pointnet")
        for network in (agent.actor, agent.critic_target):
            change(network.features_extractor.encoder)
        agents.append(agent)
    for gradient_step, agent in zip((agents[0].update, Update(agents[1])), agents, strict=True):
        torch.manual_seed(5)
        take(gradient_step, agent, make_batches(3, SHAPES["pointnet"]))
    assert_close(weights(agents[1]), weights(agents[0]), 1e-5)


def test_other_networks_are_left_to_autograd(monkeypatch):
    assert is_supported(make_agent())
    assert not is_supported(make_agent(policy_kwargs={"activation_fn": nn.Tanh}))
    assert not is_supported(make_agent(net_arch=()))
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    make_agent(policy_kwargs={"activation_fn": nn.Tanh}, precision="auto")
    with pytest.raises(ValueError, match="precision 'bfloat16': only for linear layers with ReLU"):
        make_agent(policy_kwargs={"activation_fn": nn.Tanh}, precision="bfloat16")


def test_bfloat16_takes_almost_the_same_steps():
    agents = [make_agent("pointnet", net_arch=(256, 256), **PAPER) for _ in range(2)]
    for agent, dtype in zip(agents, (torch.float32, torch.bfloat16), strict=True):
        torch.manual_seed(5)
        Update(agent, dtype)(make_batches(1, SHAPES["pointnet"])[0])
    for exact, rounded in zip(agents[0].policy.parameters(), agents[1].policy.parameters(), strict=True):
        assert rounded.dtype == torch.float32
        if exact.grad is not None:
            assert 0 < (exact.grad - rounded.grad).norm() < 0.05 * exact.grad.norm()


def test_a_precision_that_is_not_there_is_refused_unless_it_is_left_open(monkeypatch):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False)
    for precision in ("bfloat16", "float16"):
        with pytest.raises(ValueError, match=f"precision '{precision}': this cpu offers float32; or choose auto"):
            make_agent(precision=precision)
    assert resolve_precision("auto", torch.device("cpu")) == torch.float32
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert resolve_precision("auto", torch.device("cpu")) == torch.bfloat16


@pytest.mark.parametrize("encoder", SHAPES)
@pytest.mark.parametrize("entropy", [True, False])
def test_the_discounts_of_a_batch_replace_the_learner_s(encoder, entropy):
    """In the written-out step as in autograd's."""
    kwargs = {"target_bounds": (-0.1, 0.1), "backup_entropy": entropy}
    draw = torch.Generator().manual_seed(2)
    batches = [b._replace(discounts=torch.rand(64, 1, generator=draw)) for b in make_batches(3, SHAPES[encoder])]
    agents = [make_agent(encoder, **kwargs) for _ in range(2)]
    logs = []
    for gradient_step, agent in zip((agents[0].update, Update(agents[1])), agents, strict=True):
        torch.manual_seed(5)
        logs.append(take(gradient_step, agent, batches))
    assert_close(weights(agents[1]), weights(agents[0]), 1e-5)
    for expected, found in zip(*logs, strict=True):
        assert found == pytest.approx(expected, abs=1e-5)
    alike, own = make_agent(encoder, **kwargs), make_agent(encoder, **kwargs)
    for agent, discounts in ((alike, torch.full((64, 1), own.discount)), (own, None)):
        torch.manual_seed(5)
        take(Update(agent), agent, [b._replace(discounts=discounts) for b in batches])
    assert_close(weights(alike), weights(own), 1e-5)
    assert any((weights(own)[name] - value).abs().max() > 1e-4 for name, value in weights(agents[1]).items())


def test_the_share_of_clipped_targets_is_that_outside_the_bounds():
    agent = make_agent(target_bounds=(-0.5, 1.0))
    target, share = agent.clip_target(torch.tensor([[-0.6], [-0.5], [0.0], [1.0], [1.5], [9.0]]))
    assert target[:, 0].tolist() == [-0.5, -0.5, 0.0, 1.0, 1.0, 1.0] and share.item() == pytest.approx(0.5)
    agent.target_bounds = None
    target, share = agent.clip_target(torch.tensor([[9.0]]))
    assert target.item() == 9.0 and share.item() == 0.0
