"""The moving average of the actor's weights."""

import dataclasses

import torch

from agents import runs
from agents.methods.shaped_sac import make_agent
from agents.runs.checkpoint import AGENT, newest_intact
from agents.sac.algorithm import SAC
from agents.sac.averaging import MovingAverage
from agents.tasks import make_env
from agents.train import train
from shaping.tensors import read_tensors


def test_the_average_is_the_recursion(small, monkeypatch):
    """θ̄ ← θ̄ + τ (θ − θ̄) after each update, from the initial weights on."""
    config = small()
    model = make_agent(
        dataclasses.replace(config, learner=dataclasses.replace(config.learner, actor_tau=0.25)), make_env(config)
    )
    assert model.averaged_actor is model.actor, "there is none before the first update"
    expected: dict[str, torch.Tensor] = {}

    expected |= {name: weight.detach().clone() for name, weight in model.actor.named_parameters()}
    step = MovingAverage.step

    def noted(self):
        step(self)
        if self.tau == 0.25:
            for name, weight in model.actor.named_parameters():
                expected[name] += 0.25 * (weight.detach() - expected[name])

    monkeypatch.setattr(MovingAverage, "step", noted)
    model.learn(100)
    found = dict(model.averaged_actor.named_parameters())
    assert model._n_updates > 10 and found.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=1e-5, atol=1e-6)
    assert not torch.equal(found["mu.weight"], model.actor.mu.weight)


def test_the_average_is_evaluated_and_kept(small):
    """In `policy.pt` and in checkpoints, from which `load_policy` reads the same weights."""
    config = small()
    train(config)
    checkpoint, _ = newest_intact(config.out / runs.CHECKPOINTS)
    content = read_tensors(checkpoint / AGENT)
    final, _ = runs.load_policy(config.out / runs.POLICY)
    kept, _ = runs.load_policy(checkpoint)
    for name, weight in final.actor.state_dict().items():
        torch.testing.assert_close(weight, content["average"][name], rtol=0, atol=0)
        torch.testing.assert_close(weight, kept.actor.state_dict()[name], rtol=0, atol=0)
    assert not torch.equal(content["policy"]["actor.mu.weight"], final.actor.mu.weight)


def test_a_saved_agent_keeps_its_average(small, tmp_path):
    config = small()
    model = make_agent(config, make_env(config))
    model.learn(100)
    model.save(tmp_path / "agent.zip")
    loaded = SAC.load(tmp_path / "agent.zip")
    for name, weight in model.averaged_actor.state_dict().items():
        torch.testing.assert_close(loaded.averaged_actor.state_dict()[name], weight, rtol=0, atol=0)
