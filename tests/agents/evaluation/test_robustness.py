"""Each condition changes what it says and nothing else, and the table has them all."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest
import torch

import assets
from agents.config import default_config
from agents.config.file import to_json
from agents.config.train import TrainConfig
from agents.evaluate import main
from agents.evaluation.episodes import evaluate
from agents.evaluation.robustness import CONDITIONS, UNCHANGED, make_changed_env, robustness_table
from agents.methods import make_agent
from agents.runs import load_policy, policy_weights
from agents.tasks import make_env, register_task, registry
from envs.push.geometry import PUCK
from tests.agents.one_line import one_line

SHIPPED = assets.path("policies/push-slot-1-pointcloud")
CLOUDS = TrainConfig(obs="pointcloud")


def start(env, seed=3):
    """The cloud at the start of an episode, and where puck and arm are."""
    observation, info = env.reset(seed=seed)
    assert info.get("puck_visible", True)
    return observation, np.concatenate([env.unwrapped.puck_pose, env.unwrapped.end_effector_position])


@pytest.fixture(scope="module")
def plain():
    with contextlib.closing(make_env(CLOUDS)) as env:
        yield start(env)


@pytest.mark.parametrize("condition", CONDITIONS["pointcloud"], ids=lambda condition: condition.name)
def test_a_condition_changes_the_cloud_and_not_the_start(plain, condition):
    with contextlib.closing(make_changed_env(CLOUDS, condition)) as env:
        cloud, places = start(env)
        assert env.unwrapped.puck.half_width == condition.half_width
    np.testing.assert_array_equal(places, plain[1])
    assert (condition == UNCHANGED) == np.array_equal(cloud, plain[0])
    moved = np.linalg.norm((cloud - plain[0])[:, 2:].mean(axis=0))
    assert moved < 0.03, "what is known of the camera is where it is"


def test_the_points_are_on_the_puck_that_a_turned_camera_sees():
    condition = next(condition for condition in CONDITIONS["pointcloud"] if condition.turn == 30)
    with contextlib.closing(make_changed_env(CLOUDS, condition)) as env:
        env.reset(seed=3)
        offsets = env.get_wrapper_attr("points_world") - env.unwrapped.puck_position
    assert np.hypot(*offsets[:, :2].T).max() < PUCK.half_width + 1e-3


def test_every_condition_is_there_once_and_states_have_the_pucks_alone():
    names = [condition.name for condition in CONDITIONS["pointcloud"]]
    assert len(set(names)) == len(names) == 12
    assert {c.half_width for c in CONDITIONS["state"]} == {0.02, 0.03, 0.04} and len(CONDITIONS["state"]) == 3
    assert all(c.noise is None and not c.turn for c in CONDITIONS["state"])


@pytest.mark.slow
def test_the_command_tells_what_the_agent_tolerates(capsys):
    main([str(SHIPPED), "--episodes", "2", "--robustness", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert list(found["robustness"]) == [condition.name for condition in CONDITIONS["pointcloud"]]
    unchanged = found["robustness"].pop(UNCHANGED.name)
    assert {name: found[name] for name in unchanged} == unchanged
    policy, trained = load_policy(SHIPPED)
    with contextlib.closing(make_env(trained)) as env:
        assert evaluate(policy, env, 2, seed=3_000_000).steps == found["steps"]
    assert any(result["steps"] != found["steps"] for result in found["robustness"].values())


def test_the_table_of_states(capsys):
    main([str(assets.path("policies/push-slot-1-state")), "--episodes", "1", "--robustness"])
    table = capsys.readouterr().out.splitlines()[-5:]
    assert table[0] == "| condition | success [95 % interval] | steps to the goal |"
    assert [row.split(" | ")[0] for row in table[2:]] == [f"| {c.name}" for c in CONDITIONS["state"]]


def test_an_evaluation_without_success_has_no_steps():
    class Never:
        def predict(self, observation, deterministic):
            return np.zeros(2, np.float32), None

    with contextlib.closing(make_env(TrainConfig())) as env:
        env.unwrapped.horizon = 2
        table = robustness_table({"resting": evaluate(Never(), env, 1)})
    assert table.splitlines()[-1] == "| resting | 0% [0%, 79%] | - |"


def test_another_task_has_no_conditions(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    register_task("my-push", registry.get_task("push-slot"))
    config = json.loads((SHIPPED / "config.json").read_text()) | {"task": "my-push"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "policy.pt").write_bytes((SHIPPED / "policy.pt").read_bytes())
    error = one_line(main, [str(tmp_path), "--robustness"], capsys)
    assert "--robustness changes camera and puck of push-slot, and this run is of my-push; leave it out" in error


def test_images_have_no_conditions(tmp_path, capsys):
    config = default_config("default", "rgbd", "sparse")
    config = dataclasses.replace(config, steps=40, device="cpu", parallel="off")
    with contextlib.closing(make_env(config)) as env:
        model = make_agent(config, env)
    (tmp_path / "config.json").write_text(to_json(config))
    torch.save(policy_weights(model.actor), tmp_path / "policy.pt")
    error = one_line(main, [str(tmp_path), "--robustness"], capsys)
    assert "--robustness has conditions for state and pointcloud, and this run observes rgbd; leave it out" in error
