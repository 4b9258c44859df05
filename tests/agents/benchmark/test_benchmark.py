"""The benchmark compares the same work, and says in one line what is not here."""

import json
import os
import subprocess
import sys

import gymnasium as gym
import mujoco
import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger

from agents.benchmark.__main__ import main
from agents.benchmark.report import conclusion, summarise
from agents.benchmark.stages import Settings, vary
from agents.benchmark.stock import PlainPointNet, StockPush, make_stock_agent
from agents.benchmark.timing import Timer
from agents.benchmark.training import collect, fill
from agents.sac.device import available_precisions
from perception.encoders.pointnet import PointNet


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_both_stacks_observe_the_same(obs):
    """In the same state, after two hard resets too: the state to rounding, the cloud's middle to a centimetre.

    Robosuite's images mix the depths of puck and table at the puck's outline, where most of the 20 points lie.
    """
    settings = Settings(Timer("cpu", 1, 1, 0.0), "ray", "float32")
    env, stock = settings.env(obs), StockPush(clouds=obs == "pointcloud")
    for seed in (1, 2):
        mine, _ = env.reset(seed=seed)
        stock.reset()
        base, sim = env.unwrapped, stock.robosuite.sim
        sim.data._data.qpos[:] = base.data.qpos
        sim.data._data.qvel[:] = base.data.qvel
        mujoco.mj_forward(sim.model._model, sim.data._data)
        stock.robosuite.goal = base.robosuite.goal.copy()
        theirs = stock.observe(stock.robosuite._get_observations(force_update=True))
        assert theirs.shape == mine.shape and theirs.dtype == mine.dtype
        if obs == "state":
            np.testing.assert_allclose(theirs, mine, atol=1e-5)
        else:
            np.testing.assert_allclose(theirs.mean(axis=0), mine.mean(axis=0), atol=0.01)
    env.close()
    stock.close()


@pytest.mark.parametrize("visible", ["", "GPU-8f6a2b"])
def test_the_stock_cameras_draw_whatever_devices_cuda_may_see(visible):
    code = "import envs; from agents.benchmark.stock import StockPush; print(StockPush(clouds=True).reset()[0].shape)"
    environment = {k: v for k, v in os.environ.items() if k != "MUJOCO_EGL_DEVICE_ID"}
    environment |= {"CUDA_VISIBLE_DEVICES": visible, "MUJOCO_GL": "egl"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "(20, 4)\n", done.stderr


def test_both_pointnets_have_the_same_weights():
    space = gym.spaces.Box(-1.0, 1.0, (20, 4), np.float32)
    shapes = [sorted(tuple(p.shape) for p in m.parameters()) for m in (PlainPointNet(space), PointNet((20, 4)))]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("encoder, shared, learned", [("separate", 0, 1), ("shared", 1, 1), ("frozen", 1, 0)])
def test_the_stock_learner_has_an_encoder_of_each_kind(encoder, shared, learned):
    env = StockPush(clouds=True)
    agent = make_stock_agent(env, encoder, buffer_size=400, batch_size=64, device="cpu")
    agent.set_logger(Logger(None, []))
    fill(agent.replay_buffer, collect(env))
    network = agent.actor.features_extractor
    before = [parameter.clone() for parameter in network.parameters()]
    agent.train(2, 64)
    assert (agent.critic.features_extractor is network) == bool(shared)
    changed = [not torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True)]
    assert all(changed) if learned else not any(changed)
    env.close()


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_the_other_precision_is_one_in_which_the_device_multiplies(precision):
    available = available_precisions(torch.device("cpu"))
    chosen = available[-1] if precision == "auto" else precision
    settings = Settings(Timer("cpu", 1, 1, 0.0), "ray", precision)
    assert [settings.other_precision] == ([name for name in available if name != chosen] or [None])
    if settings.other_precision is not None:
        assert (
            settings.config("state", precision=settings.other_precision).learner.precision == settings.other_precision
        )


def test_many_demonstrations_of_one():
    shown = np.zeros((120, 8), np.float32)
    made = vary(shown, 30)
    assert len({len(one) for one in made}) > 5
    for one in made:
        assert np.abs(one[:, 4:6]).max() <= 0.02 and not one[-1].any() and not np.delete(one, (4, 5), axis=1).any()


def test_medians_of_alternating_samples():
    order = []

    def work(name, seconds):
        return lambda: order.append(name) or seconds

    times = Timer("cpu", 1, 2, 1.0).measure({"a": work("a", 1.0), "b": work("b", 0.5)})
    assert times == {"a": 1.0, "b": 0.5}
    assert order == ["a", "b", "a", "b", "b", "b", "b", "a"]


@pytest.mark.parametrize(
    ("arguments", "listed"),
    [("--renderer vulkan", "gl, ray"), ("--precision int4", "float32"), ("--device tpu", "cpu"), ("--threads 0", "1")],
)
def test_what_is_not_here_is_one_line(arguments, listed, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments.split())
    out, err = capsys.readouterr()
    assert stopped.value.code == 2 and not out
    assert listed in err and len(err.strip().splitlines()) == 1


def sides(project, stock=None):
    return {"project": project} | ({} if stock is None else {"stock": stock})


def test_figures_follow_from_the_times():
    """Of times [s] that nobody measured; a step of training carries its share of the reset, every 150 steps."""
    times = {
        "physics": sides(0.001),
        "state_step": sides(0.002, 0.008),
        "pointcloud_step": sides(0.004, 0.1),
        "reset": sides(0.15, 0.3),
        "pointcloud_reset": sides(0.3, 1.5),
        "sac_state": sides(0.02, 0.03),
        "sac_pointcloud": sides(0.02, 0.08),
        "train_state": sides(0.039, 0.098),
        "train_pointcloud": sides(0.043, 0.17),
        "sac_pointcloud_shared": sides(0.02, 0.05),
        "train_pointcloud_shared": sides(0.043, 0.09),
        "sac_pointcloud_frozen": sides(0.01, 0.03),
        "train_pointcloud_frozen": sides(0.028, 0.05),
    }
    times |= {f"potential_{obs}_{count}": sides(0.001 * count) for obs in ("state", "pointcloud") for count in (1, 100)}
    found = summarise(times, Settings(Timer("cpu", 1, 1, 0.0), "ray", "float32"), others=0.5)
    expected = {"state_step": 4, "pointcloud_step": 25, "reset": 2, "sac_state": 1.5, "sac_pointcloud": 4}
    expected |= {"train_state": 2.5, "train_pointcloud": 4, "train_pointcloud_frozen": 6}
    expected |= {"sac_pointcloud_shared": 2.5, "train_pointcloud_shared": 100 / 45}
    expected |= {"sac_pointcloud_both_frozen": 3, "train_pointcloud_both_frozen": 2}
    assert {name: found[f"{name}_ratio"] for name in expected} == pytest.approx(expected)
    assert found["state_step_of_physics"] == pytest.approx(0.5)
    assert found["pointcloud_step_of_physics"] == pytest.approx(0.25)
    assert found["potential_many_ratio"] == pytest.approx({"state": 100, "pointcloud": 100})
    hours = {"environment_steps": 400_000, "project": 5, "stock": 20, "project_frozen": 10 / 3}
    assert found["hours"] == pytest.approx(hours)
    assert found["milliseconds"]["state_step"] == pytest.approx({"project": 2, "stock": 8})
    busy = [line for line in conclusion(found).splitlines() if "the machine was busy" in line]
    assert found["machine"]["others"] == 0.5 and len(busy) == 1 and "used 0.5 of" in busy[0]
    assert "the machine was busy" not in conclusion(found | {"machine": found["machine"] | {"others": 0.0}})


@pytest.mark.slow
def test_json_is_one_object_whose_figures_fit_each_other():
    command = [sys.executable, "-m", "agents.benchmark", "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    times = {name: {side: ms / 1000 for side, ms in both.items()} for name, both in found["milliseconds"].items()}
    assert all(seconds > 0 for both in times.values() for seconds in both.values())
    again = summarise(times, Settings(Timer("cpu", 1, 3, 0.05), "ray", "float32"), found["machine"]["others"])
    figures = [name for name in again if "ratio" in name or "_of_physics" in name]
    assert len(figures) == 15 and found.keys() == again.keys()
    updates = [f"sac_{name}" for name in ("state", "pointcloud", "pointcloud_shared", "pointcloud_frozen")]
    both = len(available_precisions(torch.device("cpu"))) > 1
    assert {f"{name}_bfloat16" for name in updates} & times.keys() == {f"{name}_bfloat16" for name in updates if both}
    for name in (*figures, "hours"):
        assert found[name] == pytest.approx(again[name]), name
