"""A task made of any Gymnasium environment, and what every command does with it."""

import json
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

from agents import runs
from agents.collecting.stateful import get_states, set_states
from agents.compare import main as compare
from agents.config import TrainConfig, default_config
from agents.evaluate import main as evaluate
from agents.methods.demonstrations import load_trajectories, refuse_failed
from agents.pretrain import main as pretrain
from agents.tasks import Task, get_task, gymnasium_task, make_env, register_task, registry
from agents.train import main as train
from agents.train import parse
from perception.visualize.__main__ import main as visualize
from shaping import BoxGoals
from shaping.success.sparse import SparseSuccess
from shaping.value import ValueEstimator
from tests.agents.corridor import Corridor, corridor, make, write_demonstration
from tests.agents.one_line import one_line

NAME = "tests.agents.corridor:corridor"
GOALS = BoxGoals(6, achieved=slice(0, 2), desired=slice(2, 4))
SHORT = ["--evaluation.episodes", "1", "--evaluation.final-episodes", "2", "--parallel", "off"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with the demonstration of the corridor."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # of trainings in other processes
    write_demonstration(tmp_path / "corridor.hdf5")
    register_task(NAME, corridor)
    yield tmp_path
    del registry._TASKS[NAME]


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_the_task_is_sparse_and_ends_at_its_first_success():
    env = corridor.make(obs="state", grids=1, render_mode=None)
    check_env(env, skip_render_check=True)
    assert env.observation_space.dtype == np.float32 and env.observation_space.shape == (6,)
    assert env.action_space == corridor.action_space == gym.spaces.Box(-1, 1, (2,), np.float64)
    observation, _ = env.reset(seed=0)
    ended, steps = False, 0
    while not ended:
        observation, reward, terminated, truncated, info = env.step(np.full(2, 0.8, np.float32))
        ended, steps = terminated or truncated, steps + 1
        assert reward == float(terminated) == float(info["is_success"]) and info["environment_reward"] == 7
    assert terminated and 8 <= steps <= 11 and np.linalg.norm(observation[:2] - observation[2:4]) <= 0.25


class Said(Corridor):
    """The same without a word in `info`, as a GoalEnv that terminates where the reward is that of the goal."""

    def step(self, action):
        return (*super().step(action)[:4], {})


@pytest.mark.parametrize("success", [None, "won", lambda info: info["won"]])
def test_success_is_asked_of_info_or_of_the_goal_env(success):
    env = SparseSuccess(TimeLimit(Said() if success is None else Corridor(), 40), success)
    env.reset(seed=0)
    ended = [env.step(np.full(2, 3.6))[2] for _ in range(8)]
    assert ended[-1] or env.step(np.full(2, 3.6))[2]
    assert not ended[0]


def test_an_end_that_says_nothing_is_one_line():
    env = SparseSuccess(gym.make("Pendulum-v1", max_episode_steps=3))
    env.reset(seed=0)
    env.step([0.0])
    env.step([0.0])
    with pytest.raises(ValueError, match="an episode ended and info does not have 'is_success'"):
        env.step([0.0])
    with pytest.raises(ValueError, match=r"has no time limit: give gymnasium\.make max_episode_steps="):
        SparseSuccess(Corridor())
    with pytest.raises(ValueError, match="actions are Discrete"):
        gymnasium_task(lambda render_mode: gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match=r"observations have shape \(3,\), but the goals are for \(4,\)"):
        gymnasium_task(lambda render_mode: gym.make("Pendulum-v1"), goals=BoxGoals(4, displacement=slice(0, 2)))


def test_a_checkpoint_restores_any_deterministic_environment():
    first, second = (corridor.make(obs="state", grids=1, render_mode=None) for _ in range(2))
    first.reset(seed=4)
    first.reset()  # the next seed of the generator
    rng = np.random.default_rng(0)
    for _ in range(3):
        first.step(rng.uniform(-1, 1, 2).astype(np.float32))
    second.reset(seed=9)
    set_states(second, json.loads(json.dumps(get_states(first))))
    for _ in range(3):
        action = rng.uniform(-1, 1, 2).astype(np.float32)
        np.testing.assert_array_equal(first.step(action)[0], second.step(action)[0])
    np.testing.assert_array_equal(first.reset()[0], second.reset()[0])


def test_demonstrations_are_cut_rescaled_and_end_in_the_goal_set(here, capsys):
    config = TrainConfig(task=NAME, obs="place")
    env = make_env(config)
    (found,) = load_trajectories(config, env)
    assert "cut from 12 to 10 steps" in capsys.readouterr().out
    np.testing.assert_allclose(found.actions, 0.8, rtol=1e-6)
    env.reset(seed=3)
    for action, expected in zip(found.actions, found.observations["place"][1:], strict=True):
        np.testing.assert_allclose(env.step(action)[0], expected, atol=1e-6)
    refuse_failed([found], config, env)
    with pytest.raises(ValueError, match=r"is no success at its end, 1\.\d+ from the goal"):
        refuse_failed([found.until(4)], config, env)


def test_settings_of_the_task_are_defaults(here):
    config = parse(["--task", NAME])
    assert (config.potential.radius, config.steps) == (0.9, 120)
    assert parse(["--task", NAME, "--potential.radius", "0.2"]).potential.radius == 0.2
    register_task("odd", Task(corridor.make, corridor.views, settings={"potential.size": 1}))
    try:
        with pytest.raises(ValueError, match=r"settings of the task: unknown setting 'potential\.size'"):
            parse(["--task", "odd"])
    finally:
        del registry._TASKS["odd"]
    register_task("odd", Task(corridor.make, corridor.views, settings={"potential.radius": "big"}))
    try:
        with pytest.raises(ValueError, match=r"settings of the task: potential\.radius is 'big'; .* valid number"):
            parse(["--task", "odd"])
    finally:
        del registry._TASKS["odd"]
    with pytest.raises(ValueError, match=r"'potential' is a group; give each setting, such as 'potential\.NAME'"):
        default_config("default", "state", None, {"potential": {"radius": 0.1}})
    assert default_config("default", "state", None, {"steps": np.int64(50)}).steps == 50
    with pytest.raises(ValueError, match="is of version 7 of agents"):
        register_task("later", Task(corridor.make, corridor.views, version=7))


def test_a_file_with_some_settings_leaves_the_others_to_the_task(here, capsys):
    Path("some.json").write_text('{"seed": 4, "potential": {"spacing": 0.05}}')
    config = parse(["--task", NAME, "--config", "some.json"])
    potential, default = config.potential, parse(["--task", NAME])
    assert (config.seed, potential.spacing, potential.radius, config.steps) == (4, 0.05, 0.9, 120)
    assert config == replace(default, seed=4, potential=replace(default.potential, spacing=0.05))
    Path("gail.json").write_text('{"method": "gail", "task": "push-slot", "obs": "pointcloud"}')
    assert parse(["--config", "gail.json"]) == parse(["--method", "gail", "--obs", "pointcloud"])
    Path("paper.json").write_text('{"preset": "paper", "learner": {"update_ratio": 1.0}}')
    paper = parse(["--preset", "paper"])
    assert parse(["--config", "paper.json"]) == replace(paper, learner=replace(paper.learner, update_ratio=1.0))
    assert "--config gone.json: no such file" in one_line(train, ["--config", "gone.json"], capsys)
    assert "--config has no effect with --resume" in one_line(
        train, ["--resume", "run", "--config", "some.json"], capsys
    )


def test_an_observation_of_another_name_is_one_line(here, capsys):
    error = one_line(train, ["--task", NAME, "--obs", "cloud"], capsys)
    assert "--obs: unknown observation 'cloud'; this task has: place" in error


@pytest.mark.slow
def test_every_command_takes_the_task(here, capsys):
    """Pre-trained, drawn, trained, resumed, evaluated and compared by its name."""
    learner = ["--learner.learning-starts", "100", "--learner.value-steps", "50", "--learner.learning-rate", "1e-3"]
    pretrain(["--task", NAME, "--steps", "1000", "--episodes", "10", "--out", "prior.pt", *learner])
    said = ["--task", NAME, "--estimator", "prior.pt"]
    visualize([*said, "--combine", "product", "sum", "--radius", "0.5", "--out", "pictures"])
    assert (here / "pictures/potential.png").stat().st_size > 10_000
    assert "--axes 0 2: a goal has the numbers 0 to 1" in one_line(
        visualize, [*said, "--axes", "0", "2", "--out", "other"], capsys
    )
    train([*said, "--out", "whole", *SHORT])
    train([*said, "--out", "run", "--steps", "72", "--checkpoint-every", "48", *SHORT])
    train(["--resume", "run", "--steps", "120"])
    assert runs.read_result(here / "run")["success_rate"] == runs.read_result(here / "whole")["success_rate"]
    whole, resumed = (runs.policy_weights(runs.load_policy(here / name)[0].actor) for name in ("whole", "run"))
    for name, weight in whole.items():
        np.testing.assert_array_equal(weight.numpy(), resumed[name].numpy())
    evaluate(["run", "--episodes", "2", "--video", "run.gif", "--video-episodes", "1"])
    train(["--config", "run/config.json", "--seed", "1", "--out", "again", *SHORT])
    again, first = runs.read_config(here / "again"), runs.read_config(here / "run")
    assert (again.task, again.estimator, again.seed, again.potential) == (NAME, first.estimator, 1, first.potential)
    words = ["--task", NAME, "--method", "buffer", "buffer+potential", "--seeds", "1", "--parallel", "1"]
    compare([*words, "--runs", "matrix", "--", "--estimator", "prior.pt", *SHORT[:4]])
    report = (here / "comparison/report.md").read_text()
    assert "place buffer+potential" in report and "| 99 |" not in report  # not the paper's numbers
    page = (here / "comparison/report.html").read_text()
    assert "place: product, radius 0.9" in page and page.count("data:video/mp4") == 2


def test_a_file_and_a_preset_are_not_both_taken(here, capsys):
    error = one_line(train, ["--config", "config.json", "--preset", "paper"], capsys)
    assert "--config and --preset both give the defaults of all settings; leave one out" in error
    assert get_task(NAME).view("place").encoder == "identity" and make(roaming=True).unwrapped.roaming


@pytest.mark.parametrize("words", [["--axes", "1", "0"], ["--task", NAME, "--window"]])
def test_a_setting_of_the_other_kind_of_task_is_refused(words, here, capsys):
    assert "has no effect with --task" in one_line(visualize, words, capsys)


def test_a_map_needs_a_demonstration_that_succeeds(here, capsys):
    """As a training does, so that the map is that of its Φ."""
    write_demonstration(here / "short.hdf5", stop=4)
    estimator = ValueEstimator("place", "identity", hidden=(8,), action_dim=2, gamma=0.99, goals=GOALS)
    estimator.save(here / "prior.pt")
    words = ["--task", NAME, "--estimator", "prior.pt", "--demonstrations", "short.hdf5", "--out", "pictures"]
    assert "demo_0 is no success at its end" in one_line(visualize, words, capsys)
