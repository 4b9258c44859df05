"""The matrix of a comparison: which trainings it has, under which names, and what is refused."""

import dataclasses
import re
from pathlib import Path

import pytest
import torch

from agents.compare import main
from agents.launch.matrix import CompareConfig, plan
from agents.launch.training import start_or_resume
from agents.runs import run_name
from agents.train import parse
from perception import registry
from tests.agents.one_line import one_line


@pytest.mark.parametrize(
    "arguments, said",
    [
        ("--seeds 0", "--seeds is 0"),
        ("-- --seed 3", "--seed after --"),
        ("-- --out a", "--out after --"),
        ("-- --grids 2", "--grids after --"),
        ("-- --learner.tau 2", "--learner.tau is 2"),
        ("--method magic", "unknown method 'magic'; known methods: buffer+potential+annealing"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert said in one_line(main, arguments.split(), capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("obs, preset", [("state", "default"), ("pointcloud", "paper")])
def test_a_training_is_started_with_the_settings_that_are_compared(obs, preset, tmp_path):
    config = CompareConfig(obs=(obs,), method=("potential",), grids=(2,), seeds=8, preset=preset)
    settings = ["--learner.gamma", "0.98", "--track", "wandb", "mlflow"]
    training = list(plan(config, settings)[f"{obs} potential"].values())[7]
    assert training.learner.gamma == 0.98 and training.parallel == "off" and training.track == ("wandb", "mlflow")
    assert (training.method, training.grids, training.seed) == ("potential", 2, 7)
    _, module, name, *arguments = start_or_resume(training, tmp_path / "a run")
    assert [module, name] == ["-m", "agents.train"]
    assert parse(arguments) == dataclasses.replace(training, out=tmp_path / "a run")


def test_all_combinations_are_trained(tmp_path):
    """A value that is the default does not change the name of a run, so that it is shared with other comparisons."""
    config = CompareConfig(
        obs=("state",),
        method=("potential", "buffer+potential"),
        grids=(1, 3),
        vary=(("potential.combine", "product", "sum"), ("learner.net-arch", "64 64", "32")),
        seeds=2,
        runs=tmp_path,
    )
    planned = plan(config, [])
    assert len(planned) == 16 and all(len(of_one) == 2 for of_one in planned.values())
    found = planned["state grids=3 potential potential.combine=sum learner.net-arch=64 64"]
    names = [
        f"push-slot-3-state-potential-potential.combine=sum-learner.net-arch=64,64-seed{seed}" for seed in range(2)
    ]
    assert [path.name for path in found] == names
    for seed, training in enumerate(found.values()):
        assert (training.grids, training.seed, training.method) == (3, seed, "potential")
        assert training.potential.combine == "sum" and training.learner.net_arch == (64, 64)
    usual = planned["state grids=1 potential potential.combine=product learner.net-arch=32"]
    assert next(path.name for path in usual) == "push-slot-1-state-potential-learner.net-arch=32-seed0"


def test_a_setting_does_not_vary_where_the_method_does_not_use_it():
    vary = (("potential.combine", "product", "sum"), ("demonstrations", "a/ten.hdf5"))
    config = CompareConfig(obs=("state",), method=("buffer", "potential"), vary=vary, seeds=1, runs=Path())
    found = {label: next(path.name for path in of_one) for label, of_one in plan(config, []).items()}
    ten = "demonstrations=a_ten.hdf5-seed0"
    assert found == {
        "state buffer": f"push-slot-1-state-buffer-{ten}",
        "state potential potential.combine=product": f"push-slot-1-state-potential-{ten}",
        "state potential potential.combine=sum": f"push-slot-1-state-potential-potential.combine=sum-{ten}",
    }


@pytest.mark.parametrize(
    "words, said",
    [
        ("--vary learner.tau 0.1 -- --learner.tau 0.3", "--vary learner.tau: the setting is given twice"),
        ("--vary learner.tau 0.1 --vary learner.tau 0.2", "--vary learner.tau: the setting is given twice"),
        ("--vary learner.tau 0.05 0.050", "are the same runs"),
        ("--vary demonstrations a/b a_b", "are the same runs"),
        ("--vary", "--vary : give a setting of agents.train"),
        ("--slurm timeout_min=3", "--slurm has an effect with --launcher slurm only"),
    ],
)
def test_a_matrix_that_is_ambiguous_is_refused(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert said in one_line(main, ["--obs", "state", "--seeds", "1", *words.split()], capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--vary", "learner.tau"], ["--vary", "seed", "1", "2"]])
def test_what_varies_is_a_setting_with_values(words, capsys):
    assert f"--vary {words[1]}: give a setting of agents.train" in one_line(main, words, capsys)


def test_encoders_are_trained_with_the_observations_that_they_take(tmp_path):
    """And images with the methods without a potential; a default encoder has the runs of other comparisons."""
    methods, encoders = ("potential", "buffer"), ("pointnet", "dgcnn", "rgbd_cnn")
    config = CompareConfig(obs=("pointcloud", "rgbd"), method=methods, encoder=encoders, seeds=1, runs=tmp_path)
    planned = plan(config, ["--learner.encoder-training", "scratch"])
    found = {label: next(path.name for path in of_one) for label, of_one in planned.items()}
    cloud = "push-slot-1-pointcloud"
    assert found == {
        "pointcloud potential encoder=pointnet": f"{cloud}-potential-seed0",
        "pointcloud potential encoder=dgcnn": f"{cloud}-potential-encoder=dgcnn-seed0",
        "pointcloud buffer encoder=pointnet": f"{cloud}-buffer-seed0",
        "pointcloud buffer encoder=dgcnn": f"{cloud}-buffer-encoder=dgcnn-seed0",
        "rgbd buffer encoder=rgbd_cnn": "push-slot-1-rgbd-buffer-seed0",
    }
    for of_one in planned.values():
        for directory, training in of_one.items():
            arguments = start_or_resume(training, directory)[3:]
            assert parse(arguments) == dataclasses.replace(training, out=directory)
            assert directory.name == run_name(training)  # where agents.train writes by itself


class AnyMean(torch.nn.Linear):
    """The encoder of README: it can be made for any shape, and takes clouds alone."""

    out_features = 64

    def __init__(self, in_shape):
        super().__init__(in_shape[-1], 64)

    def forward(self, cloud):
        return super().forward(cloud).relu().mean(dim=1)


def test_an_encoder_that_can_be_made_must_give_its_features_too(monkeypatch):
    monkeypatch.setitem(registry._ENCODERS, "any-mean", AnyMean)
    config = CompareConfig(method=("buffer",), encoder=("any-mean",), seeds=1)
    assert list(plan(config, ["--learner.encoder-training", "scratch"])) == ["pointcloud buffer"]
    for obs, found in {"state": "(1,)", "rgbd": "(1, 48, 64)"}.items():
        one = dataclasses.replace(config, obs=(obs,))
        with pytest.raises(ValueError, match=f"--obs {obs}: .* gives an array of shape {re.escape(found)}, not"):
            plan(one, [])


def test_encoders_from_random_weights_have_directories_of_their_own():
    encoders = ("pointnet", "pointnet2", "dgcnn", "set_transformer")
    config = CompareConfig(obs=("pointcloud",), method=("buffer",), encoder=encoders, seeds=1)
    varied = dataclasses.replace(config, vary=(("learner.encoder-training", "scratch"),))
    planned = [one for of_label in plan(varied, []).values() for one in of_label.items()]
    assert len(planned) == 4 and all("encoder-training=scratch" in path.name for path, _ in planned)
    assert all(training.learner.encoder_training == "scratch" for _, training in planned)
    usual = plan(dataclasses.replace(config, encoder=()), [])
    assert not {path for of_label in usual.values() for path in of_label} & {path for path, _ in planned}


def test_without_observations_all_are_compared_that_a_method_takes():
    with_goals, every = ["state", "pointcloud"], ["state", "pointcloud", "rgbd"]
    for method, expected in {"potential": with_goals, "gail": with_goals, "buffer": every, "adril": every}.items():
        planned = plan(CompareConfig(method=(method,), seeds=1), [])
        assert [label.split()[0] for label in planned] == expected
