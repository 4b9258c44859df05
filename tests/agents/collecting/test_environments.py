"""Trainings with several environments: what they start from, count, store and continue from."""

import dataclasses
import json

import gymnasium
import numpy as np
import pytest

from agents import runs
from agents.config.command import command
from agents.config.file import read_config_file, to_json
from agents.config.train import EvaluationConfig, TrainConfig, check
from agents.methods.shaped_sac import collect_beside, make_agent
from agents.runs.checkpoint import newest_intact
from agents.runs.log import read_progress
from agents.tasks import make_env
from agents.train import main, parse, train
from shaping.potential import Potential
from tests.agents.one_line import one_line
from tests.faults.equality import assert_same_end


@pytest.fixture
def several(configured, tmp_path):
    """Configure some steps of `count` environments, in blocks of 12, with a checkpoint every 30."""

    def build(name: str, count: int, obs: str = "state", **changes) -> TrainConfig:
        settings = {"steps": 90, "checkpoint_every": 30, "evaluation": EvaluationConfig(45, 1, 1)} | changes
        config = configured(tmp_path / name, obs, num_envs=count, **settings)
        learner = dataclasses.replace(config.learner, block=12, update_ratio=0.5, learning_starts=20, batch_size=16)
        return dataclasses.replace(config, learner=learner)

    return build


def stored(directory) -> dict[str, np.ndarray]:
    path, _ = newest_intact(directory / runs.CHECKPOINTS)
    return {file.name.split(".")[1]: np.load(file) for file in path.glob("buffer.*.npy")}


def test_each_starts_from_a_seed_of_its_own(several):
    config = dataclasses.replace(several("run", 3), seed=5)
    model = make_agent(config, *(make_env(config) for _ in range(3)))
    collected = collect_beside(model, config)
    for index, observation in enumerate(collected.reset()):
        expected, _ = make_env(config).reset(seed=5 + index)
        np.testing.assert_array_equal(observation, expected)
    assert (model.train_freq.frequency, model.gradient_steps) == (4, 6), "12 environment steps, half as many updates"


def test_steps_are_those_of_all_environments(several):
    """Of 100 steps 102 are taken, 34 in each environment, and every row of the buffer is there."""
    config = several("run", 3, steps=100)
    assert train(config)["environment_steps"] == 102
    rows = stored(config.out)
    assert rows["observations"].shape == (34, 3, 8) and rows["observations"].dtype == np.float32
    assert len(np.unique(rows["observations"].reshape(102, 8), axis=0)) == 102
    assert rows["dones"].sum() == 0, "so the next row is what follows"
    np.testing.assert_array_equal(rows["potentials"][1:, :, 0], rows["potentials"][:-1, :, 1])
    progress = read_progress(config.out / "progress.csv")
    evaluated = [row["step"] for row in progress if "eval/success_rate" in row]
    assert evaluated == [48, 96, 102], "at the first end of a block from each multiple of 45 on, and at the end"
    names = sorted(path.name for path in (config.out / runs.CHECKPOINTS).iterdir())
    assert names == ["step-000000096", "step-000000102"]
    assert progress[-1]["train/n_updates"] == 6 * 8, "after each block from learning_starts on"


@pytest.mark.slow
@pytest.mark.parametrize(("count", "obs", "at"), [(2, "state", 70), (3, "state", 69), (2, "pointcloud", 70)])
def test_a_crashed_and_resumed_training_ends_like_an_uninterrupted_one(several, crash, count, obs, at):
    whole, parts = several("whole", count, obs), several("parts", count, obs)
    train(dataclasses.replace(whole, parallel="off"))
    crash(dataclasses.replace(parts, parallel="on"), at)
    train(dataclasses.replace(runs.read_config(parts.out), resume=parts.out))
    assert_same_end(whole.out, parts.out)
    if obs == "pointcloud":
        assert stored(whole.out)["features"].shape == (45, count, 64)


def test_a_finished_run_is_left_alone_and_takes_more_steps(several):
    """The last block of 50 steps has 3 of them, and one more that 2 environments take."""
    config = several("run", 2, steps=51)
    train(config)
    before = (config.out / "result.json").read_bytes()
    assert train(dataclasses.replace(config, resume=config.out))["environment_steps"] == 52
    first = stored(config.out)["observations"]
    assert json.loads(before)["success_rate"] == json.loads((config.out / "result.json").read_bytes())["success_rate"]
    assert train(dataclasses.replace(config, steps=61, resume=config.out))["environment_steps"] == 62
    np.testing.assert_array_equal(stored(config.out)["observations"][: len(first)], first)


class Broken(gymnasium.Wrapper):
    """Returns a reward that is not finite in its tenth step."""

    steps = 0

    def step(self, action):
        self.steps += 1
        observation, reward, *rest = self.env.step(action)
        return observation, np.nan if self.steps == 10 else reward, *rest


def run(config) -> list[str]:
    return [*command(config).split()[3:], "--out", str(config.out)]


def test_what_is_not_finite_names_its_environment(several, monkeypatch, capsys):
    made = []

    def broken(config):
        made.append(make_env(config))
        return Broken(made[-1]) if len(made) == 2 else made[-1]

    monkeypatch.setattr("agents.train.make_env", broken)
    error = one_line(main, run(several("run", 3)), capsys)
    assert "reward is nan in step 10, episode 1 of the training in environment 2 of 3; " in error


def test_a_potential_that_is_not_finite_names_its_environment(several, monkeypatch, capsys):
    """In the fifth step of both, of which the first two evaluations are of the first frames."""
    calls, evaluate = iter(range(1000)), Potential.__call__

    def broken(self, observations, success):
        values = evaluate(self, observations, success)
        if len(observations) == 2 and next(calls) == 5:
            values[1] = np.nan
        return values

    monkeypatch.setattr(Potential, "__call__", broken)
    config = several("run", 2)
    error = one_line(main, run(config), capsys)
    assert "potential is nan at index [1, 1] in step 5, episode 1 of the training in environment 2 of 2; " in error
    (path,) = config.out.glob("not-finite-*.npz")
    with np.load(path) as report:
        assert len(report["observation"]) == 8 and str(report["role"]) == "training in environment 2 of 2"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--num-envs 3", "--num-envs 3 does not divide --learner.block 8"),
        ("--num-envs 16", "--num-envs 16 does not divide --learner.block 8"),
        ("--num-envs 0", "--num-envs is 0"),
        ("--preset paper --num-envs 2", "--num-envs 2 does not divide --learner.block 1"),
    ],
)
def test_a_number_that_does_not_fit_is_one_line(flags, words, tmp_path, capsys):
    error = one_line(main, [*flags.split(), "--out", str(tmp_path / "run")], capsys)
    assert words in error and not (tmp_path / "run").exists()


def test_a_configuration_without_the_number_has_one(tmp_path):
    path = tmp_path / "config.json"
    values = json.loads(to_json(TrainConfig()))
    assert values.pop("num_envs") == 1
    path.write_text(json.dumps(values))
    assert read_config_file(path) == TrainConfig()
    assert parse(["--num-envs", "4"]).num_envs == 4 and "--num-envs 4" in command(parse(["--num-envs", "4"]))
    check(parse(["--num-envs", "4"]))
