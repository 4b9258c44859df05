"""An exported agent gives the agent's actions where this project cannot be imported."""

import json
import subprocess
import sys

import numpy as np
import pytest

import assets
from agents.export import main
from agents.runs import load_policy
from envs.demonstrations import load_demonstrations
from tests.agents.one_line import one_line

ELSEWHERE = """
import sys
for name in ("agents", "assets", "envs", "perception", "shaping", "stable_baselines3", "torch_geometric"):
    sys.modules[name] = None
import numpy as np
observations = np.load("observations.npy")
if sys.argv[1].endswith(".onnx"):
    import onnxruntime
    session = onnxruntime.InferenceSession(sys.argv[1])
    actions = session.run(None, {"observation": observations})[0]
else:
    import torch
    actions = torch.jit.load(sys.argv[1])(torch.from_numpy(observations)).detach().numpy()
np.save("actions.npy", actions)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torchscript", "onnx"])
@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_actions_are_the_agent_s_on_recorded_observations(obs, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = assets.path(f"policies/push-slot-1-{obs}")
    main([str(run), "--format", kind])
    file = next(path for path in tmp_path.iterdir() if path.suffix != ".json")
    assert f"wrote {file.name}, agent.json" in capsys.readouterr().out
    (recorded,) = load_demonstrations(assets.path("demonstrations/push-slot-1.hdf5"))
    observations = recorded.observations[obs].astype(np.float32)
    np.save("observations.npy", observations)
    subprocess.run([sys.executable, "-W", "ignore", "-c", ELSEWHERE, file.name], check=True, timeout=120)
    policy, _ = load_policy(run)
    expected, _ = policy.predict(observations, deterministic=True)
    assert np.abs(np.load("actions.npy") - expected).max() <= 1e-6
    contract = json.loads((tmp_path / "agent.json").read_text())
    assert contract["observation"]["shape"] == ["batch", *observations.shape[1:]]
    assert contract["action"]["low"] == [-1.0, -1.0] and "[m]" in contract["observation"]["meaning"]


def test_a_run_that_is_not_there_is_named(tmp_path, capsys):
    assert f"{tmp_path / 'none'}: no such run" in one_line(main, [str(tmp_path / "none")], capsys)


def test_a_package_that_is_not_installed_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    words = [str(assets.path("policies/push-slot-1-state")), "--format", "onnx", "--out", str(tmp_path / "a.onnx")]
    assert "--format onnx needs an extra: pip install" in one_line(main, words, capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "out, said",
    [
        ("agent.json", "give a name that ends in .pt"),
        ("agent.onnx", "give a name that ends in .pt"),
        ("run/policy.pt", "lies in a run directory"),
        ("run/checkpoints/step-000000100/agent.pt", "lies in a run directory"),
    ],
)
def test_no_file_of_a_run_is_replaced(out, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = assets.path("policies/push-slot-1-state")
    (tmp_path / "run").mkdir()
    for name in ("config.json", "policy.pt"):
        (tmp_path / "run" / name).write_bytes((run / name).read_bytes())
    assert said in one_line(main, [str(run), "--out", out], capsys)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["config.json", "policy.pt", "run"]
    assert (tmp_path / "run/policy.pt").read_bytes() == (run / "policy.pt").read_bytes()
