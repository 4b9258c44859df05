"""Configurations from files: what does not fit is refused in one line."""

import dataclasses
import inspect
import json
from operator import attrgetter

import pytest
from stable_baselines3 import SAC

from agents import runs
from agents.config.file import read_config_file, to_json
from agents.config.presets import PRESETS
from agents.config.train import LearnerConfig, TrainConfig, check
from agents.methods.demonstrations import load_trajectories
from agents.methods.shaped_sac import make_agent
from agents.tasks import make_env
from agents.train import parse

STOCK = {name: parameter.default for name, parameter in inspect.signature(SAC).parameters.items()}
# What the paper gives, and where; what it does not give, the encoder and Δ(s)'s β among it, is not pinned.
PAPER = {
    "learner.gamma": 0.99,  # table env_para, as the four below
    "learner.annealing_steps": 10_000,
    "learner.batch_size": 512,
    "learner.buffer_size": 1_000_000,
    "learner.update_ratio": 2.0,
    "learner.block": 1,
    "learner.tau": STOCK["tau"],
    "method": "buffer+potential+annealing",  # table mean_std, first row
    "learner.demonstration_share": 0.1,  # Experiments, Baselines
    "learner.target_bounds": (-2.0, 1.0),  # appendix
    "learner.reward_scale": 1.0,  # eq. reshaped_reward
    "potential.combine": "sum",  # eq. demo_pot
    "potential.terminal": 1.0,  # footnote of eq. demo_pot
    "potential.spacing": 0.0,  # eq. sinle_pot: the maximum is over all demonstrated states
    "potential.radius": 0.1,  # appendix: the prior was trained up to this distance
    "learner.n_steps": 1,
    "learner.actor_tau": 1.0,
    "learner.learning_rate": STOCK["learning_rate"],  # appendix: SAC "with the default configurations"; those below too
    "learner.learning_starts": STOCK["learning_starts"],
    "learner.ent_coef": STOCK["ent_coef"],
    "learner.backup_entropy": True,
    "learner.net_arch": (256, 256),
}
STEPS = {"state": 200_000, "pointcloud": 400_000}  # table env_para


@pytest.mark.parametrize("obs", STEPS)
def test_the_paper_s_preset_has_the_paper_s_settings(obs):
    config = parse(["--preset", "paper", "--obs", obs])
    assert config == PRESETS["paper"][obs] and config.steps == STEPS[obs]
    assert {name: attrgetter(name)(config) for name in PAPER} == PAPER


@pytest.mark.parametrize("obs", STEPS)
def test_the_paper_s_agent_has_the_paper_s_settings(obs):
    """What is made of the preset, from one demonstration of each grid."""
    config = parse(["--preset", "paper", "--obs", obs, "--device", "cpu"])
    env = make_env(config)
    model = make_agent(config, env)
    shown, one_of_each = (load_trajectories(each, env) for each in (config, dataclasses.replace(config, grids=2)))
    env.close()
    buffer = model.replay_buffer
    assert (model.batch_size, model.gradient_steps, model.train_freq.frequency) == (512, 2, 1)
    assert (model.gamma, model.annealing_steps, model.discount) == (0.99, 10_000, 0.0)
    assert model.target_bounds == (-2.0, 1.0) and model.backup_entropy and model.guide is None
    stock = SAC("MlpPolicy", env, buffer_size=1)
    assert model.tau == stock.tau and model.learning_starts == stock.learning_starts
    assert model.learning_rate == stock.learning_rate and model.target_entropy == stock.target_entropy
    assert model.log_ent_coef.item() == stock.log_ent_coef.item()
    assert [layer.out_features for layer in model.actor.latent_pi[::2]] == stock.policy.net_arch
    assert buffer.buffer_size == STEPS[obs], "a ring of a million that the training does not fill"
    assert buffer.demonstration_share == 0.1 and buffer.demonstrations.size() == shown[0].horizon
    assert (len(shown), len(one_of_each)) == (1, 2)
    potential = buffer.potential
    assert (potential.combine, potential.radius, potential.terminal, potential.gamma) == ("sum", 0.1, 1.0, 0.99)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": "many"}, "steps is 'many'; input should be a valid integer"),
        ({"steps": True}, "steps is True; input should be a valid integer"),
        ({"steps": 10**30}, "--steps is 1000"),
        ({"obs": ["state"]}, "obs is ['state']; input should be"),
        ({"seed": -1}, "--seed is -1; it must lie in [0, 4294967295]"),
        ({"threads": 10**6}, "--threads is 1000000"),
        ({"estimator": 7}, "estimator is 7; input should be"),
        ({"__class__": "os.system"}, "unknown setting '__class__'"),
        ({"learner": [1]}, "learner is [1]; input should be"),
        ({"learner": {"net_arch": [10**9]}}, "--learner.net-arch is 1000000000"),
        ({"learner": {"net_arch": [8] * 1000}}, "--learner.net-arch has 1000 layers"),
        ({"learner": {"learning_rate": float("nan")}}, "--learner.learning-rate is nan"),
        ({"learner": {"target_bounds": [1.0, -1.0]}}, "--learner.target-bounds are 1.0 and -1.0"),
        ({"learner": {"target_bounds": [1.0]}}, "learner.target_bounds is [1.0]; field required"),
        ({"learner": {"ent_coef": "1e999"}}, "--learner.ent-coef is '1e999'"),
        ({"learner": {"ent_coef": float("inf")}}, "learner.ent_coef is inf; input should be a valid string"),
        ({"learner": {"magic": 1}}, "unknown setting 'learner.magic'"),
        ({"method": "magic"}, "unknown method 'magic'"),
    ],
    ids=str,
)
def test_a_configuration_that_does_not_fit_is_refused_in_one_line(tmp_path, change, message):
    path = tmp_path / "config.json"
    data = json.loads(to_json(TrainConfig()))
    for key, value in change.items():
        data[key] = data[key] | value if isinstance(value, dict) else value
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError) as refused:
        runs.read_config(tmp_path)
    assert str(refused.value).startswith(f"{path}: ") and message in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "text", ["", "[", "null", "[]", "{", "[" * 10**5, '"' + "a" * 10**6 + '"', "\x00\xff", "9" * 5000]
)
def test_what_is_no_configuration_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError) as refused:
        runs.read_config(tmp_path)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_a_configuration_survives_its_file(tmp_path):
    config = TrainConfig(obs="pointcloud", out=tmp_path, stop_at_success=1.0)
    (tmp_path / "config.json").write_text(to_json(config))
    assert read_config_file(tmp_path / "config.json") == config
    shorter = json.loads(to_json(config))
    del shorter["learner"]["precision"], shorter["threads"]  # as an older version wrote it
    (tmp_path / "config.json").write_text(json.dumps(shorter))
    assert read_config_file(tmp_path / "config.json") == config


OUT_OF_RANGE = [
    "1e999",
    "auto_1e999",
    "1e39",
    "9" * 400,
    "auto_1e-60",
    "nan",
    "inf",
    "-inf",
    "auto_inf",
    "auto_Infinity",
]


@pytest.mark.parametrize(
    "value", ["auto0.005", "auto-0.005", "automatic", "auto_", "auto_0", "-1", "auto_nan", *OUT_OF_RANGE]
)
def test_a_temperature_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match=f"--learner.ent-coef is '{value[:70]}.*; give auto, a number") as refused:
        check(TrainConfig(learner=LearnerConfig(ent_coef=value)))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", ["auto", "auto_0.005", "auto_1e-3", "0.2", "1", "0", "1e-999"])
def test_temperatures(value):
    check(TrainConfig(learner=LearnerConfig(ent_coef=value)))
