"""A method is named by what it switches on; a run directory records what was in force."""

import json

import pytest

from agents import runs
from agents.compare import main as compare
from agents.config import METHODS, PRESETS, TrainConfig
from agents.config.command import command
from agents.config.file import flat, read_config_file, to_json, unused
from agents.config.train import PotentialConfig
from agents.train import main as train
from agents.train import parse
from tests.agents.one_line import one_line

PAPER_S = "buffer+potential+annealing"


@pytest.mark.parametrize("name", METHODS)
def test_a_name_lists_its_parts(name):
    parts = set() if name == "sparse" else set(name.split("+"))
    method = METHODS[name]
    switched = {part for part in ("buffer", "potential", "annealing", "guide") if getattr(method, part)}
    assert parts == switched | {method.imitation} - {""} and ("guide" not in parts or "potential" in parts)


def test_the_paper_s_rows_have_no_guide_and_the_default_has_one():
    for of_one in PRESETS["paper"].values():
        assert of_one.method == PAPER_S and not METHODS[of_one.method].guide
    assert TrainConfig().method == f"{PAPER_S}+guide"


@pytest.mark.parametrize("name", METHODS)
def test_only_what_was_in_force_is_recorded(name, tmp_path):
    config = TrainConfig(method=name, seed=3)
    path = tmp_path / "config.json"
    path.write_text(to_json(config))
    text = path.read_text()
    assert ("guide_decay" in text) == METHODS[name].guide
    assert ("combine" in text) == METHODS[name].potential
    assert ("annealing_steps" in text) == METHODS[name].annealing
    assert ("demonstration_share" in text) == METHODS[name].buffer
    assert read_config_file(path) == config
    assert parse(command(config).split()[3:]) == config


@pytest.mark.parametrize(
    "words, said",
    [
        ("--method gail --learner.gamma 1", "--learner.gamma is 1; give a smaller one"),
        ("--method adril --learner.buffer-size 100", "give a --learner.buffer-size of at least --steps"),
        ("--method bc --learner.tau 0.1", "--learner.tau has no effect with --method bc"),
    ],
)
def test_what_a_baseline_cannot_do_is_one_line(words, said, tmp_path, capsys):
    assert said in one_line(train, [*words.split(), "--out", str(tmp_path / "run")], capsys)
    assert not list(tmp_path.iterdir())


def test_a_setting_that_a_method_does_not_use_is_refused(tmp_path, capsys):
    words = ["--method", PAPER_S, "--learner.guided-share", "0.3", "--out", str(tmp_path / "run")]
    error = one_line(train, words, capsys)
    assert f"--learner.guided-share has no effect with --method {PAPER_S}; leave it out" in error
    error = one_line(train, ["--method", "sparse", "--potential.combine", "sum"], capsys)
    assert "--potential.combine has no effect with --method sparse" in error
    error = one_line(train, ["--method", "sparse", "--demonstrations", "mine.hdf5"], capsys)
    assert "--demonstrations has no effect with --method sparse" in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share, method", [(0.5, f"{PAPER_S}+guide"), (0.0, PAPER_S)])
def test_a_run_of_an_earlier_version_is_named_by_whether_it_had_a_guide(share, method, tmp_path):
    data = json.loads(to_json(TrainConfig())) | {"method": PAPER_S}
    data["learner"]["guided_share"] = share
    (tmp_path / "config.json").write_text(json.dumps(data))
    assert runs.read_config(tmp_path).method == method


def test_a_run_of_another_method_is_not_reused_under_its_name(tmp_path, capsys):
    """As a run of an earlier version, whose name did not tell that it had a guide."""
    directory = tmp_path / "runs" / f"push-slot-1-state-{PAPER_S}-seed0"
    directory.mkdir(parents=True)
    data = json.loads(to_json(TrainConfig())) | {"method": PAPER_S}
    (directory / "config.json").write_text(json.dumps(data))
    words = ["--obs", "state", "--seeds", "1", "--method", PAPER_S, "--runs", str(tmp_path / "runs")]
    error = one_line(compare, [*words, "--out", str(tmp_path / "out")], capsys)
    assert f"{directory} holds a run of {PAPER_S}+guide, not of {PAPER_S}; move it away" in error


@pytest.mark.parametrize(
    "setting, said",
    [
        ({"encoder": "dgcnn"}, "dgcnn, not of pointnet"),
        ({"grids": 3}, "3 grids, not of 1 grid"),
        ({"preset": "paper"}, "preset paper, not of preset default"),
        ({"potential": PotentialConfig(combine="sum")}, "sum, not of product"),
    ],
    ids=str,
)
def test_a_run_of_something_else_is_not_reused_under_the_name(setting, said, tmp_path, capsys):
    """As one of agents.train --out, or of an earlier version with another default; nor is it continued."""
    directory = tmp_path / "runs" / "push-slot-1-pointcloud-potential-seed0"
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(to_json(TrainConfig(obs="pointcloud", method="potential", **setting)))
    words = ["--obs", "pointcloud", "--seeds", "1", "--method", "potential", "--runs", str(tmp_path / "runs")]
    error = one_line(compare, [*words, "--out", str(tmp_path / "out")], capsys)
    assert f"{directory} holds a run of {said}; move it away" in error


def test_every_setting_is_used_by_some_method():
    names = flat(TrainConfig())
    assert all(any(name not in unused(TrainConfig(method=method)) for method in METHODS) for name in names)
