"""The benchmark compares the same work, and says in one line what is not here."""

import json
import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from agents.benchmark.__main__ import main
from agents.benchmark.stages import Settings, vary
from agents.benchmark.stock import PlainPointNet, StockPush
from agents.benchmark.timing import Timer
from perception.encoders.pointnet import PointNet


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_both_stacks_observe_the_same(obs):
    """In the same state, after two hard resets too: the state to rounding, the cloud's middle to millimetres."""
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
    space = StockPush(clouds=True).observation_space
    shapes = [sorted(tuple(p.shape) for p in m.parameters()) for m in (PlainPointNet(space), PointNet((20, 4)))]
    assert shapes[0] == shapes[1]


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


def test_json_is_one_object_with_every_figure():
    command = [sys.executable, "-m", "agents.benchmark", "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    ratios = {
        *("state_step_ratio", "pointcloud_step_ratio", "reset_ratio", "sac_state_ratio", "sac_pointcloud_ratio"),
        *("train_pointcloud_ratio", "train_pointcloud_frozen_ratio"),
    }
    shares = {"state_step_of_physics", "pointcloud_step_of_physics"}
    assert ratios | shares <= found.keys()
    assert all(0 < found[name] < 1000 for name in ratios) and all(0 < found[name] <= 1 for name in shares)
    assert found["hours"]["project_frozen"] < found["hours"]["project"] < found["hours"]["stock"]
