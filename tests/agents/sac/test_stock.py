"""With Stable-Baselines3's own settings, `agents.SAC` learns what its SAC learns, whatever the networks become."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import SAC as StockSAC
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor
from torch import nn
from torch.nn.utils import parametrizations

from agents import SAC
from agents.sac.fast.update import Update
from agents.sac.policy import EncoderExtractor, SharedEncoderPolicy

NUMBERS = spaces.Box(-1, 1, (5,), np.float32)
SETTINGS = {"learning_starts": 12, "batch_size": 16, "buffer_size": 100, "seed": 4, "device": "cpu"}


class Draws(gym.Env):
    """Observations drawn from a space, rewards of the action, episodes of eight steps."""

    action_space = spaces.Box(-2, 2, (2,), np.float32)

    def __init__(self, space=NUMBERS):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        self.left = 8
        return self.observation_space.sample(), {}

    def step(self, action):
        self.left -= 1
        return self.observation_space.sample(), float(np.sum(action)), False, self.left == 0, {}


class Layer(BaseFeaturesExtractor):
    """A feature extractor with weights."""

    def __init__(self, space):
        super().__init__(space, 4)
        self.linear = nn.Linear(space.shape[0], 4)

    def forward(self, observations):
        return self.linear(observations)


def weights(agent):
    found = dict(agent.policy.state_dict())
    return found | {"log_ent_coef": agent.log_ent_coef.detach()}


def assert_same(ours, stock):
    expected = weights(stock)
    for name, value in weights(ours).items():
        assert (value - expected[name]).abs().max() <= 2e-5, name


SPACES = {
    "images": spaces.Box(0, 255, (3, 6, 6), np.uint8),
    "a number": spaces.Discrete(4),
    "numbers": spaces.MultiDiscrete([3, 2]),
    "bits": spaces.MultiBinary(4),
    "bits in rows": spaces.MultiBinary([2, 3]),
    "double precision": spaces.Box(-1, 1, (5,), np.float64),
    "integers": spaces.Box(-5, 5, (3,), np.int64),
}


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
@pytest.mark.parametrize("space", SPACES)
def test_updates_see_the_observations_that_acting_sees(space, activation):
    """In the written-out step and in autograd's."""
    agents = []
    for algorithm in (SAC, StockSAC):
        env = Draws(SPACES[space])
        env.observation_space.seed(1)
        kwargs = {"net_arch": [16, 16], "activation_fn": activation}
        agents.append(algorithm("MlpPolicy", env, policy_kwargs=kwargs, **SETTINGS).learn(18))
    assert agents[0]._n_updates == 6
    assert isinstance(agents[0]._step, Update) == (activation is nn.ReLU)
    assert_same(*agents)


DICTIONARY = spaces.Dict({"image": spaces.Box(0, 255, (1, 36, 36), np.uint8), "numbers": NUMBERS})
SMALL = {"policy_kwargs": {"net_arch": [16]}}
CASES = {
    "exploration that depends on the state": ("MlpPolicy", NUMBERS, {"use_sde": True, "use_sde_at_warmup": True}),
    "a dictionary": ("MultiInputPolicy", DICTIONARY, SMALL),
    "a CNN": ("CnnPolicy", DICTIONARY["image"], SMALL),
    "a CNN for both": ("CnnPolicy", DICTIONARY["image"], {"policy_kwargs": {"share_features_extractor": True}}),
    "an encoder of one's own": ("MlpPolicy", NUMBERS, {"policy_kwargs": {"features_extractor_class": Layer}}),
    "several steps": ("MlpPolicy", NUMBERS, {"n_steps": 3, "gamma": 0.9}),
    "several steps, by autograd": ("MlpPolicy", NUMBERS, {"n_steps": 3, "policy_kwargs": {"net_arch": []}}),
    "a slow target": ("MlpPolicy", NUMBERS, {"target_update_interval": 2, "gradient_steps": 5}),
    "one critic": ("MlpPolicy", NUMBERS, {"policy_kwargs": {"n_critics": 1}, "ent_coef": "auto_0.1"}),
}


@pytest.mark.parametrize("case", CASES)
def test_settings_of_stable_baselines3_do_what_they_do_there(case):
    policy, space, settings = CASES[case]
    agents = []
    for algorithm in (SAC, StockSAC):
        space.seed(1)
        agents.append(algorithm(policy, Draws(space), **SETTINGS | settings).learn(18))
    assert_same(*agents)


def test_a_dictionary_is_refused_where_the_policy_takes_an_array():
    with pytest.raises(ValueError, match="use MultiInputPolicy"):
        SAC(SharedEncoderPolicy, Draws(DICTIONARY), **SETTINGS)
    kwargs = {"features_extractor_class": EncoderExtractor, "features_extractor_kwargs": {"encoder": "state"}}
    with pytest.raises(ValueError, match="encoder 'state' takes a Box of observations"):
        SAC(SharedEncoderPolicy, Draws(DICTIONARY), policy_kwargs=kwargs, **SETTINGS)


@pytest.mark.parametrize("case", ["a dictionary", "exploration that depends on the state"])
def test_a_shared_encoder_learns_from_the_critic_alone(case):
    _, space, settings = CASES[case]
    kwargs = {"features_extractor_class": CombinedExtractor if space is DICTIONARY else Layer, "net_arch": [16]}
    agent = SAC(SharedEncoderPolicy, Draws(space), policy_kwargs=kwargs, use_sde="use_sde" in settings, **SETTINGS)
    encoder = list(agent.actor.features_extractor.parameters())
    before = [p.clone() for p in encoder]
    agent.learn(14)
    assert not any(torch.equal(a, b) for a, b in zip(before, encoder, strict=True))
    held = [p for group in agent.actor.optimizer.param_groups for p in group["params"]]
    assert not {id(p) for p in held} & {id(p) for p in encoder}


def freeze(agent):
    agent.critic.qf0[0].requires_grad_(False)
    agent.actor.latent_pi[0].weight.requires_grad_(False)


def replace(agent):
    for network, owner in ((agent.actor.latent_pi, agent.actor), (agent.critic.qf1, agent.critic)):
        torch.manual_seed(3)
        network[2] = nn.Linear(16, 16)
        owner.optimizer.add_param_group({"params": list(network[2].parameters())})


def rescale_gradient(agent):
    agent.critic.qf0[0].weight.register_hook(lambda grad: 3 * grad + 1e-3)


def watch_outputs(agent):
    agent.actor.latent_pi[0].register_forward_hook(lambda module, inputs, output: 0.5 * output)


def watch_gradients(agent):
    agent.critic.qf0[2].register_full_backward_hook(lambda module, inputs, outputs: (2 * inputs[0] + 1e-3,))


def normalise(agent):
    parametrizations.weight_norm(agent.actor.latent_pi[2])


def without_bias(agent):
    layer = nn.Linear(16, 16, bias=False)
    layer.weight.data.copy_(agent.actor.latent_pi[2].weight)
    agent.actor.latent_pi[2] = layer


def watch_temperature(agent):
    agent.log_ent_coef.register_hook(lambda grad: 3 * grad + 1e-3)


def replace_forward(agent):
    layer = agent.actor.mu
    layer.forward = lambda x: 0.3 * nn.Linear.forward(layer, x)


def replace_forward_of_all(agent):
    forward = agent.critic.forward
    agent.critic.forward = lambda *args: tuple(0.3 * value for value in forward(*args))


def share_a_layer(agent):
    for critic in (agent.critic, agent.critic_target):
        critic.qf1[0] = critic.qf0[0]


def repeat_a_layer(agent):
    agent.actor.latent_pi.extend([agent.actor.latent_pi[2], nn.ReLU()])


def watch_optimiser(agent):
    """Which is called in the written-out step as well."""
    agent.critic.optimizer.register_step_pre_hook(lambda optimizer, *_: optimizer.param_groups[0].update(lr=1e-5))


WRITTEN_OUT = [replace, watch_optimiser]
BY_AUTOGRAD = [
    freeze,
    rescale_gradient,
    watch_outputs,
    watch_gradients,
    watch_temperature,
    normalise,
    without_bias,
    replace_forward,
    replace_forward_of_all,
    share_a_layer,
    repeat_a_layer,
]


@pytest.mark.parametrize("change", [*WRITTEN_OUT, *BY_AUTOGRAD])
@pytest.mark.parametrize("before", [0, 18], ids=["before the first update", "later"])
def test_what_is_changed_in_the_networks_holds(change, before):
    agents = []
    for algorithm in (SAC, StockSAC):
        agent = algorithm("MlpPolicy", Draws(), policy_kwargs={"net_arch": [16, 16]}, **SETTINGS)
        agent.observation_space.seed(1)
        if before:
            agent.learn(before)
        change(agent)
        agents.append(agent.learn(20, reset_num_timesteps=False))
    assert isinstance(agents[0]._step, Update) == (change in WRITTEN_OUT)
    assert_same(*agents)


def test_the_written_out_step_returns_when_a_hook_is_gone():
    agent = SAC("MlpPolicy", Draws(), **SETTINGS).learn(14)
    calls = []
    hook = agent.critic.qf0.register_forward_hook(lambda *_: calls.append(1))
    agent.learn(14)
    assert calls and not isinstance(agent._step, Update)
    hook.remove()
    calls.clear()
    agent.learn(14)
    assert not calls and isinstance(agent._step, Update)


def test_a_precision_that_only_the_written_out_step_has_is_refused_when_it_goes(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    agent = SAC("MlpPolicy", Draws(), precision="bfloat16", **SETTINGS)
    freeze(agent)
    with pytest.raises(ValueError, match="precision 'bfloat16': only for linear layers"):
        agent.learn(14)


@pytest.mark.parametrize("name", ["update", "_target"])
def test_a_gradient_step_that_is_overridden_is_taken(name):
    calls = []

    def override(self, *args):
        calls.append(1)
        return getattr(SAC, name)(self, *args)

    derived = type("Derived", (SAC,), {name: override})
    agent = derived("MlpPolicy", Draws(), **SETTINGS).learn(18)
    assert len(calls) == agent._n_updates == 6
