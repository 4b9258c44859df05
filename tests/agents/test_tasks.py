"""A task of one's own reaches every command by its name."""

import dataclasses
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import h5py
import numpy as np
import pytest

from agents import runs
from agents.config import TrainConfig
from agents.evaluate import main as evaluate
from agents.launch.training import start_or_resume
from agents.tasks import Task, available_tasks, get_task, make_env, register_task, registry
from agents.train import main as train
from assets.examples.other_puck import tasks as other_puck
from envs.demonstrations import load_demonstrations
from envs.push.playback import play_states
from tests.agents.one_line import one_line

ROOT = Path(__file__).parents[2]


class Short(gym.Wrapper):
    """The slot task, ended by a time limit after 20 steps."""

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.count += 1
        return observation, reward, terminated, truncated or self.count == 20, info

    def reset(self, **kwargs):
        self.count = 0
        return self.env.reset(**kwargs)


@pytest.fixture
def short():
    slot = get_task("push-slot")
    task = dataclasses.replace(slot, make=lambda **kwargs: Short(slot.make(**kwargs)))
    assert register_task("short", task) is task
    yield "short"
    del registry._TASKS["short"]


def test_a_registered_task_is_trained_in_and_evaluated(short, tmp_path, capsys):
    words = "--steps 60 --learner.learning-starts 30 --learner.batch-size 16 --evaluation.episodes 1"
    last = ["--evaluation.final-episodes", "2", "--parallel", "off", "--out", str(tmp_path / "run")]
    train(["--task", short, *words.split(), *last])
    assert runs.read_config(tmp_path / "run").task == short
    assert runs.read_result(tmp_path / "run")["steps"] == [20, 20]
    evaluate([str(tmp_path / "run"), "--episodes", "3"])
    assert "over 3 episodes" in capsys.readouterr().out


@pytest.mark.parametrize("name", other_puck.PUCKS)
def test_the_demonstration_with_another_puck_is_of_its_environment(name):
    """Played back by its states it ends in the goal set, flat on the table; only its file has this puck."""
    task = other_puck.task(name)
    (trajectory,) = load_demonstrations(task.demonstrations[1], states=True)
    with closing(task.make(obs="state", grids=1, render_mode=None)) as env:
        played = np.array(list(play_states(env, trajectory)))
        np.testing.assert_allclose(played, trajectory.observations["state"], atol=1e-5)
        assert env.unwrapped._info()["is_success"]
    with h5py.File(task.demonstrations[1]) as file:
        recorded = json.loads(file["data"].attrs["env_args"])["env_kwargs"]["puck"]
    assert recorded == dataclasses.asdict(other_puck.PUCKS[name])


def test_a_task_that_is_not_registered_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        train(["--task", "nowhere", "--out", str(tmp_path / "run")])
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1
    assert "unknown task 'nowhere'; registered tasks: push-slot" in error and not list(tmp_path.iterdir())


def test_a_name_is_taken_once(short):
    with pytest.raises(ValueError, match="'short' is registered already"):
        register_task(short, get_task(short))
    assert available_tasks() == ["push-slot", "short"]


@pytest.mark.parametrize("obs", ["state", "pointcloud", "rgbd"])
def test_a_task_tells_the_spaces_of_its_environment(obs):
    task = get_task("push-slot")
    env = make_env(TrainConfig(obs=obs))
    assert env.observation_space.shape == task.view(obs).space.shape and env.action_space == task.action_space
    env.close()
    if task.view(obs).goals is None:
        assert env.observation_space == task.view(obs).space
        return
    play = task.make_play(obs=obs, success_speed=0.1, goal_speed=0.0)
    assert play.observation_space.shape == task.view(obs).space.shape and play.action_space == task.action_space
    play.close()


def test_an_observation_that_a_task_does_not_have_is_named():
    with pytest.raises(ValueError, match="unknown observation 'smell'; this task has: state, pointcloud, rgbd"):
        get_task("push-slot").view("smell")


def test_a_task_without_files_asks_for_them(tmp_path, capsys):
    slot = get_task("push-slot")
    bare = Task(slot.make, {"state": dataclasses.replace(slot.view("state"), estimator=None)})
    register_task("bare", bare)
    try:
        for words, flag in (
            ([], "--estimator"),
            (["--estimator", str(slot.view("state").estimator)], "--demonstrations"),
        ):
            with pytest.raises(SystemExit):
                train(["--task", "bare", *words, "--out", str(tmp_path / "run")])
            assert flag in capsys.readouterr().err
    finally:
        del registry._TASKS["bare"]


MODULE = """
import dataclasses
import torch
from agents.tasks import get_task

SLOT = dataclasses.replace(get_task("push-slot"), prior="mine")
NUMBER = 3

class Plain(torch.nn.Module):
    def __init__(self, in_shape):
        super().__init__()
        self.out_features = in_shape[0]

    def forward(self, observation):
        return 10 * observation
"""
SHORT = "--steps 60 --learner.learning-starts 30 --learner.batch-size 16 --evaluation.episodes 1 --method buffer"


def command(module, *words, where):
    line = [sys.executable, "-m", module, *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(line, cwd=where, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_a_task_and_an_encoder_are_named_on_the_command_line(tmp_path):
    """Trained, resumed, compared, evaluated and exported from a directory that holds their module."""
    (tmp_path / "mine.py").write_text(MODULE)
    names = ["--task", "mine:SLOT", "--encoder", "mine:Plain"]
    end = ["--evaluation.final-episodes", "1", "--parallel", "off"]
    done = command("agents.train", *names, *SHORT.split(), *end, "--out", "run", where=tmp_path)
    assert done.returncode == 0, done.stderr
    config = runs.read_config(tmp_path / "run")
    assert (config.task, config.encoder) == ("mine:SLOT", "mine:Plain")
    for module, words in (
        ("agents.train", ["--resume", "run", "--steps", "70", *names]),
        ("agents.evaluate", ["run", "--episodes", "1", "--imports", "mine:SLOT", "mine:Plain"]),
        ("agents.export", ["run", "--imports", "mine:SLOT", "mine:Plain"]),
    ):
        done = command(module, *words, where=tmp_path)
        assert done.returncode == 0, done.stderr
    unnamed = command("agents.evaluate", "run", where=tmp_path)
    assert unnamed.returncode == 2 and unnamed.stderr.count("\n") == 1
    assert "name it on the command line, --task or --imports module:Name, to import it" in unnamed.stderr
    assert start_or_resume(config, tmp_path / "run")[-4:] == names


@pytest.mark.parametrize(
    "name, said",
    [
        ("nowhere:Thing", "cannot be imported (ModuleNotFoundError: No module named 'nowhere')"),
        ("mine:Absent", "has no attribute 'Absent'"),
        ("mine:NUMBER", "is 3, neither an agents.tasks.Task nor an encoder class"),
        ("broken:Thing", "cannot be imported (ZeroDivisionError: division by zero)"),
    ],
)
def test_what_cannot_be_imported_is_one_line(name, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    error = one_line(train, ["--task", name, "--out", str(tmp_path / "run")], capsys)
    assert f"--task {name}: " in error and said in error and not (tmp_path / "run").exists()
