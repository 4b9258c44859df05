"""Every command refuses every number that it cannot use, by one line that names the flag."""

import dataclasses
import importlib
from typing import get_args, get_type_hints

import pytest

import assets
from agents.compare import CompareConfig
from agents.config.train import TrainConfig
from agents.evaluate import EvaluateConfig
from agents.pretrain import learn
from agents.prior.config import GoalLearnerConfig, PretrainConfig
from perception.diagnose.config import DiagnoseConfig
from perception.visualize.config import VisualizeConfig

CONFIGS = {
    "agents.train": TrainConfig,
    "agents.pretrain": PretrainConfig,
    "agents.evaluate": EvaluateConfig,
    "agents.compare": CompareConfig,
    "perception.diagnose.__main__": DiagnoseConfig,
    "perception.visualize.__main__": VisualizeConfig,
}


def numbers(config, prefix=""):
    """Flags of the settings that are numbers, and whether they are floats."""
    for name, kind in get_type_hints(config).items():
        flag = f"{prefix}{name.replace('_', '-')}"
        if dataclasses.is_dataclass(kind):
            yield from numbers(kind, f"{flag}.")
        kinds = {kind, *get_args(kind)}
        if kinds & {int, float}:
            yield f"--{flag}", float in kinds


def refused(module, flag, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = importlib.import_module(module)
    run = [str(assets.path("policies/push-slot-1-state"))] if module == "agents.evaluate" else []
    out = ["--out", "new"] if module == "envs.record" else []
    monkeypatch.setattr("sys.argv", [module, *run, *out, flag, *words])
    with pytest.raises(SystemExit) as stop:
        command.main()
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.startswith("error: ") and error.count("\n") == 1, error
    assert flag in error and not list(tmp_path.iterdir())


FLAGS = [(module, flag, real) for module, config in CONFIGS.items() for flag, real in numbers(config)]
FLAGS += [("agents.benchmark.__main__", "--threads", False)]
FLAGS += [("envs.record", flag, False) for flag in ("--grids", "--episodes", "--seed")]


@pytest.mark.parametrize("module, flag, real", FLAGS)
def test_a_number_that_cannot_be_is_refused(module, flag, real, tmp_path, monkeypatch, capsys):
    repeat = 2 if flag in ("--learner.target-bounds", "--learner.guide-decay", "--axes", "--extrinsics-noise") else 1
    for value in [str(10**30), *(["nan", "inf", "-1e999"] * real)]:
        refused(module, flag, [value] * repeat, tmp_path, monkeypatch, capsys)


def test_every_command_has_numbers():
    assert len(FLAGS) > 40 and {module for module, *_ in FLAGS} > set(CONFIGS)


@pytest.mark.parametrize(
    "module, flag, words",
    [
        ("agents.pretrain", "--seed", ["-1"]),
        ("agents.pretrain", "--evaluate-every", ["0"]),
        ("agents.pretrain", "--episodes", ["0"]),
        ("agents.pretrain", "--learner.batch-size", ["0"]),
        ("agents.pretrain", "--learner.relabelled", ["2"]),
        ("agents.pretrain", "--learner.nearby", ["-0.5"]),
        ("agents.pretrain", "--learner.value-steps", ["0"]),
        ("agents.pretrain", "--learner.ent-coef", ["1e999"]),
        ("agents.pretrain", "--encoder", [""]),
        ("agents.pretrain", "--steps", [str(10**9)]),  # more than the memory of a machine
        ("agents.train", "--learner.gamma", ["0"]),
        ("agents.train", "--learner.gamma", ["0.5"]),
        ("agents.train", "--learner.demonstration-share", ["1"]),
        ("agents.train", "--learner.precision", [""]),
        ("agents.train", "--learner.net-arch", ["8192"] * 16),
        ("agents.train", "--method", [""]),
        ("agents.train", "--encoder", [""]),
        ("agents.train", "--potential.radius", ["0"]),
        ("agents.compare", "--obs", []),
        ("agents.compare", "--method", []),
        ("agents.compare", "--method", ["magic"]),
        ("agents.benchmark.__main__", "--precision", ["magic"]),
        ("perception.visualize.__main__", "--renderer", ["magic"]),
        ("perception.visualize.__main__", "--cameras", ["magic"]),
        ("perception.visualize.__main__", "--radius", ["0"]),
        ("envs.record", "--task", [""]),
        ("envs.record", "--grids", ["0"]),
    ],
)
def test_a_setting_that_cannot_be_is_refused(module, flag, words, tmp_path, monkeypatch, capsys):
    refused(module, flag, words, tmp_path, monkeypatch, capsys)


def test_pre_training_is_checked_as_a_function_too(tmp_path):
    with pytest.raises(ValueError, match=r"--learner\.gradient-steps is 0"):
        learn(PretrainConfig(out=tmp_path / "a.pt", learner=GoalLearnerConfig(gradient_steps=0)))
    assert not list(tmp_path.iterdir())
