"""The command that evaluates: numbers, JSON and videos."""

import json
import os
import subprocess
import sys

import gymnasium as gym
import imageio_ffmpeg
import mujoco
import numpy as np
import pytest

import assets
from agents import runs
from agents.config.train import TrainConfig
from agents.evaluate import EVALUATE_SEED, main
from agents.evaluation.film import film


def shipped(obs):
    return assets.path(f"policies/push-slot-1-{obs}")


SHORT = """
import gymnasium as gym
from agents import evaluate
from agents.evaluation import film

def six_steps(config, render_mode=None):
    return gym.make("PushSlot-v0", obs=config.obs, horizon=6, render_mode=render_mode)

evaluate.make_env = film.make_env = six_steps
evaluate.main()
"""


def decode(path):
    """Frames as a player shows them."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-r", "20", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    played = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(played, np.uint8).reshape(-1, 480, 640, 3).astype(float)


def test_json_is_alone_on_standard_output(capsys):
    main([str(shipped("state")), "--episodes", "3", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert {"success_rate", "interval", "mean_steps", "episodes"} <= result.keys()
    assert len(result["failures"]) == 3 - result["successes"]
    assert result["episodes"] == len(result["steps"]) == 3
    assert result["interval"][0] < result["success_rate"] <= 1


@pytest.mark.slow
def test_episodes_do_not_depend_on_the_number_of_threads():
    """Sums in another order are rounded otherwise, and contacts make other episodes of that."""
    command = [sys.executable, "-m", "agents.evaluate", str(shipped("pointcloud")), "--episodes", "2", "--json"]
    environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
    steps = []
    for threads in ({}, {"OMP_NUM_THREADS": "1"}):
        done = subprocess.run(command, env=environment | threads, capture_output=True, text=True, check=True)
        steps.append(json.loads(done.stdout)["steps"])
    assert steps[0] == steps[1]


def test_states_are_evaluated_without_a_renderer(monkeypatch, capsys):
    monkeypatch.setattr(mujoco, "Renderer", None)
    monkeypatch.setattr(mujoco, "GLContext", None, raising=False)
    main([str(shipped("state")), "--episodes", "1"])
    assert "over 1 episodes" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_a_video_plays_and_stands_upright(obs, tmp_path):
    path = tmp_path / "new" / "pushes.mp4"
    arguments = [str(shipped(obs)), "--episodes", "1", "--video", str(path), "--video-episodes", "1"]
    command = [
        sys.executable,
        "-c",
        SHORT,
        *arguments,
    ]  # ffmpeg is forked off, for which a test process may be too large
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"wrote {path}" in done.stdout, done.stderr
    frames = decode(path)
    env = gym.make("PushSlot-v0", render_mode="rgb_array")
    env.reset(seed=EVALUATE_SEED)
    expected = env.render().astype(float)
    env.close()
    assert len(frames) == 6 + 1, "the start, and what each step leads to"
    error = np.abs(frames[0] - expected).mean()
    assert error < 5
    assert all(np.abs(frames[0] - turned).mean() > 3 * error for turned in (expected[::-1], expected[:, ::-1]))
    assert np.abs(frames[-1] - frames[0]).mean() > 0.1, "nothing moves"


class Ramp(gym.Env):
    """Ten steps, in which a picture with a bright upper half gets brighter."""

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return np.zeros(8, np.float32), {}

    def step(self, action):
        self.count += 1
        return np.zeros(8, np.float32), 0.0, False, self.count == 10, {"is_success": False}

    def render(self):
        return np.repeat([[[20 * self.count + 50]], [[0]]], 240, axis=0).repeat(640, 1).repeat(3, 2).astype(np.uint8)


def test_an_animated_image_plays_in_real_time(tmp_path, monkeypatch):
    monkeypatch.setattr("agents.evaluation.film.make_env", lambda *_, **__: Ramp())
    film(runs.load_policy(shipped("state"))[0], TrainConfig(), tmp_path / "ramp.gif", 1, 0)
    frames = decode(tmp_path / "ramp.gif")
    assert len(frames) == 10 + 1, "20 frames a second"
    brightness = frames[:, :200].mean((1, 2, 3))
    assert (np.diff(brightness) > 10).all() and (frames[:, 280:].mean((1, 2, 3)) < brightness).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--episodes", "0"], "--episodes is 0; it must lie in [1, 1000000]"),
        (["--seed", "-1"], "--seed is -1; it must lie in [0, 4294967295]"),
        (["--video", "pushes.txt"], "--video pushes.txt: unknown kind of file; give one that ends in .mp4 or .gif"),
        (["--video", "a.mp4", "--video-episodes", "0"], "--video-episodes is 0"),
        (["--video", "/dev/null/a.mp4"], "/dev/null"),
        (["--video", "/proc/a.mp4"], "/proc/a.mp4"),  # a place that takes no files, also of root
        (["--video", "/proc/a.gif"], "/proc/a.gif"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capfd):
    with pytest.raises(SystemExit) as stop:
        main([str(shipped("state")), "--json", *arguments])
    captured = capfd.readouterr()
    assert stop.value.code == 2 and captured.out == ""
    assert message in captured.err and captured.err.count("\n") == 1


def test_what_is_no_run_is_said(tmp_path, capsys):
    for path, message in ((tmp_path / "nowhere", "no such run"), (tmp_path, "holds no policy")):
        with pytest.raises(SystemExit):
            main([str(path)])
        error = capsys.readouterr().err
        assert message in error and str(path) in error and error.count("\n") == 1
