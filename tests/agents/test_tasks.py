"""A task of one's own reaches every command by its name."""

import dataclasses

import gymnasium as gym
import pytest

from agents import runs, tasks
from agents.config import TrainConfig
from agents.evaluate import main as evaluate
from agents.tasks import Task, available_tasks, get_task, make_env, register_task
from agents.train import main as train


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
    del tasks._TASKS["short"]


def test_a_registered_task_is_trained_in_and_evaluated(short, tmp_path, capsys):
    words = "--steps 60 --learner.learning-starts 30 --learner.batch-size 16 --evaluation.episodes 1"
    last = ["--evaluation.final-episodes", "2", "--parallel", "off", "--out", str(tmp_path / "run")]
    train(["--task", short, *words.split(), *last])
    assert runs.read_config(tmp_path / "run").task == short
    assert runs.read_result(tmp_path / "run")["steps"] == [20, 20]
    evaluate([str(tmp_path / "run"), "--episodes", "3"])
    assert "over 3 episodes" in capsys.readouterr().out


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


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_a_task_tells_the_spaces_of_its_environment(obs):
    task = get_task("push-slot")
    env = make_env(TrainConfig(obs=obs))
    assert env.observation_space.shape == task.view(obs).space.shape and env.action_space == task.action_space
    env.close()
    play = task.make_play(obs=obs, success_speed=0.1, goal_speed=0.0)
    assert play.observation_space.shape == task.view(obs).space.shape and play.action_space == task.action_space
    play.close()


def test_an_observation_that_a_task_does_not_have_is_named():
    with pytest.raises(ValueError, match="unknown observation 'smell'; this task has: state, pointcloud"):
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
        del tasks._TASKS["bare"]
