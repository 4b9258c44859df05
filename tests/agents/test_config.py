"""Configurations from files: what does not fit is refused in one line."""

import json

import pytest

from agents import runs
from agents.config import LearnerConfig, TrainConfig, check
from agents.config_json import read_config_file, to_json


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": "many"}, "steps is 'many', not int"),
        ({"steps": True}, "steps is True, not int"),
        ({"steps": 10**30}, "--steps is 1000"),
        ({"obs": "smell"}, "obs is 'smell', not Literal['state', 'pointcloud']"),
        ({"obs": ["state"]}, "obs is ['state'], not Literal"),
        ({"seed": -1}, "--seed is -1; it must lie in [0, 4.29497e+09]"),
        ({"threads": 10**6}, "--threads is 1000000"),
        ({"estimator": 7}, "estimator is 7, not Path"),
        ({"__class__": "os.system"}, "unknown setting '__class__'; known: obs, task"),
        ({"learner": [1]}, "learner is [1], not LearnerConfig"),
        ({"learner": {"net_arch": [10**9]}}, "--learner.net-arch is 1000000000"),
        ({"learner": {"net_arch": [8] * 1000}}, "--learner.net-arch has 1000 layers"),
        ({"learner": {"learning_rate": float("nan")}}, "learner.learning_rate is nan, not float"),
        ({"learner": {"target_bounds": [1.0, -1.0]}}, "--learner.target-bounds are 1.0 and -1.0"),
        ({"learner": {"target_bounds": [1.0]}}, "learner.target_bounds is [1.0], not tuple[float, float]"),
        ({"learner": {"ent_coef": "1e999"}}, "--learner.ent-coef is '1e999'"),
        ({"learner": {"ent_coef": float("inf")}}, "learner.ent_coef is inf, not str"),
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
    with pytest.raises(ValueError, match=f"--learner.ent-coef is '{value[:70]}.*; give a number, auto") as refused:
        check(TrainConfig(learner=LearnerConfig(ent_coef=value)))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", ["auto", "auto_0.005", "auto_1e-3", "0.2", "1", "0", "1e-999"])
def test_temperatures(value):
    check(TrainConfig(learner=LearnerConfig(ent_coef=value)))
