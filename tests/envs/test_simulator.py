"""The simulation runs where nothing can be drawn, and with no other versions than those that are tested."""

import os
import re
import subprocess
import sys
from pathlib import Path

import mujoco
import numba
import pytest
import robosuite

from envs import simulator
from envs.push.env import PushEnv

ROOT = Path(__file__).parents[2]
# What the loader of shared libraries and Python's import say on a machine without OpenGL, X11 and what links to them.
BARE_MACHINE = """
import ctypes, ctypes.util, sys

ABSENT = ("EGL", "GLESv", "GLX", "OSMesa", "GLdispatch", "OpenGL.so", "libGL.so", "libX11", "glfw")

class CDLL(ctypes.CDLL):
    def __init__(self, name, *args, **kwargs):
        if name and any(part in str(name) for part in ABSENT):
            raise OSError(f"{name}: cannot open shared object file: No such file or directory")
        super().__init__(name, *args, **kwargs)

find_library = ctypes.util.find_library
ctypes.CDLL = ctypes.cdll._dlltype = CDLL
ctypes.util.find_library = lambda name: None if name in ("EGL", "GL", "GLESv2", "OSMesa", "X11") else find_library(name)

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("open3d", "cv2", "glfw"):
            raise ImportError("libGL.so.1: cannot open shared object file: No such file or directory")

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def bare(tmp_path):
    """Run a command on a machine without OpenGL; return what it did."""
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(BARE_MACHINE)

    def run(*command: str, gl: str | None = None, cwd: Path = tmp_path) -> subprocess.CompletedProcess:
        environment = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
        environment |= {"PYTHONPATH": f"{tmp_path / 'bare'}{os.pathsep}{ROOT}"}
        environment |= {} if gl is None else {"MUJOCO_GL": gl}
        command = (sys.executable, *command)
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)

    return run


@pytest.mark.slow
def test_states_train_where_nothing_can_be_drawn(bare, tmp_path):
    short = ["--steps", "60", "--learner.learning-starts", "30", "--evaluation.final-episodes", "1"]
    done = bare("-m", "agents.train", "--obs", "state", *short, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "result.json").is_file()
    assert "Exception ignored" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_clouds_stop_there_in_one_line(bare, tmp_path):
    """What is missing, what to install and what to set; nothing is left behind."""
    for module in ("agents.train", "envs.record"):
        done = bare("-m", module, "--obs", "pointcloud", "--out", "left")
        assert done.returncode != 0 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1, done.stderr
        for word in ("Open3D", "libGL.so.1", "libgl1", "MUJOCO_GL"):
            assert word in done.stderr
        assert not (tmp_path / "left").exists()


def test_the_benchmark_stops_there_in_one_line(bare):
    done = bare("-m", "agents.benchmark", "--quick")
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "libEGL" in done.stderr, done.stderr


DRAW = """
import os
before = os.environ.get("MUJOCO_GL")
import envs, gymnasium
env = gymnasium.make("PushSlot-v0", render_mode="rgb_array")
env.reset(seed=0)
try:
    env.render()
except (ImportError, OSError, RuntimeError) as error:
    print(error)
assert before in (None, os.environ["MUJOCO_GL"]), "the choice survives imports that change it"
"""


@pytest.mark.parametrize("gl", [None, "osmesa", "glfw", "disable"])
def test_images_say_what_is_missing(bare, gl):
    done = bare("-c", DRAW, gl=gl)
    assert done.returncode == 0 and done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    library = {None: "libEGL", "osmesa": "libOSMesa", "glfw": "libglfw", "disable": "OpenGL"}[gl]
    assert library in done.stdout and f"MUJOCO_GL={gl or 'egl'} " in done.stdout


OBSERVE = """
import os
import gymnasium, envs
names = "MUJOCO_GL", "MUJOCO_EGL_DEVICE_ID", "PYOPENGL_PLATFORM"
before = [os.environ.get(name) for name in names]
for obs in ("state", "pointcloud"):
    gymnasium.make("PushSlot-v0", obs=obs).reset(seed=0)
assert before == [os.environ.get(name) for name in names]
env = gymnasium.make("PushSlot-v0", render_mode="rgb_array")
env.reset(seed=0)
try:
    print(env.render().shape)
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "variables, said",
    [
        ({"CUDA_VISIBLE_DEVICES": "1", "MUJOCO_EGL_DEVICE_ID": "0"}, ["(480, 640, 3)"]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8f6a2b", "MUJOCO_EGL_DEVICE_ID": "0"}, ["(480, 640, 3)"]),
        (
            {"CUDA_VISIBLE_DEVICES": "1", "MUJOCO_EGL_DEVICE_ID": "99"},
            ["an EGL device (0", "MUJOCO_EGL_DEVICE_ID is '99'", "unset or change that"],
        ),
        ({"MUJOCO_EGL_DEVICE_ID": "GPU-8f6a2b"}, ["an EGL device (0", "MUJOCO_EGL_DEVICE_ID is 'GPU-8f6a2b'"]),
        ({"PYOPENGL_PLATFORM": "glx"}, ["PYOPENGL_PLATFORM unset, and it is 'glx'", "): unset it"]),
    ],
)
def test_what_a_dependency_refuses_of_the_choice_of_a_device_concerns_images_alone(variables, said):
    environment = {k: v for k, v in os.environ.items() if k != "PYOPENGL_PLATFORM"} | {"MUJOCO_GL": "egl"} | variables
    command = [sys.executable, "-c", OBSERVE]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert len(done.stdout.splitlines()) == 1 and all(words in done.stdout for words in said), done.stdout


DRAW_ALONE = """
import perception.{module}
import mujoco, perception
scene = '<body name="a"><geom size="1"/></body><camera name="b"/>'
model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{{scene}}</worldbody></mujoco>")
perception.make_renderer("gl", model, "b", "a", 8, 8).render(mujoco.MjData(model))
"""


@pytest.mark.parametrize("module", ["cameras", "rendering", "observation"])
def test_perception_alone_says_what_is_missing_when_it_draws(bare, module):
    done = bare("-c", DRAW_ALONE.format(module=module))
    assert done.returncode == 1 and "libEGL" in done.stderr.splitlines()[-1], done.stderr


def test_the_ranges_are_those_of_the_package():
    declared = re.findall(r'"(mujoco|robosuite)([^"]+)"', (ROOT / "pyproject.toml").read_text())
    ranges = {name: tuple(rest.split(",")) for name, rest in declared if rest[0] in "<>"}
    assert ranges == {"mujoco": simulator.MUJOCO, "robosuite": simulator.ROBOSUITE}


@pytest.mark.parametrize("version", ["3.2.7", "3.10.0", "3.10.0rc1", "3.11", "4.0.0", "10.0.0"])
def test_other_versions_of_mujoco_are_one_line(version):
    with pytest.raises(ImportError) as caught:
        simulator.check_versions(version, "1.5.2")
    message = str(caught.value)
    assert "\n" not in message
    for word in (version, "1.5.2", "mujoco>=3.3,<3.10", "robosuite>=1.5.1,<1.6"):
        assert word in message


@pytest.mark.parametrize(("mine", "theirs"), [("3.3", "1.5.1"), ("3.3.7", "1.5.2"), ("3.9.9", "1.5.9")])
def test_versions_within_the_ranges_are_accepted(mine, theirs):
    simulator.check_versions(mine, theirs)
    with pytest.raises(ImportError, match=r"robosuite 1\.4\.1"):
        simulator.check_versions(mine, "1.4.1")


def test_every_way_to_build_the_task_checks(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "4.0.0")
    for build in (PushEnv, lambda: robosuite.make("PushSlot", robots="Panda")):
        with pytest.raises(ImportError, match=r"MuJoCo 4\.0\.0"):
            build()


@pytest.mark.parametrize("module", ["agents.train", "envs.record", "perception.visualize"])
def test_commands_end_in_one_line_with_another_version(tmp_path, module):
    """As installed: the metadata come first on the path, and MuJoCo itself cannot even be imported."""
    (tmp_path / "new" / "mujoco-4.0.0.dist-info").mkdir(parents=True)
    (tmp_path / "new" / "mujoco-4.0.0.dist-info" / "METADATA").write_text("Name: mujoco\nVersion: 4.0.0\n")
    (tmp_path / "new" / "mujoco.py").write_text("raise ImportError('bindings are missing\\nreinstall')")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path / 'new'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", module, "--out", "left"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in ("MuJoCo 4.0.0", f"robosuite {robosuite.__version__}", ">=3.3,<3.10"):
        assert word in done.stderr
    assert not (tmp_path / "left").exists()


def test_a_place_for_compiled_functions_is_found_where_everything_is_read_only(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "there"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    monkeypatch.setattr(numba.config, "CACHE_DIR", numba.config.CACHE_DIR)  # numba is imported already, and has read it
    monkeypatch.setattr(os, "access", lambda *_: False)
    simulator._let_numba_cache()
    assert os.environ["NUMBA_CACHE_DIR"] == "mine"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    simulator._let_numba_cache()
    (Path(os.environ["NUMBA_CACHE_DIR"]) / "a").write_text("")
    assert os.environ["NUMBA_CACHE_DIR"] == numba.config.CACHE_DIR
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.undo()
    before = os.environ.get("NUMBA_CACHE_DIR")
    simulator._let_numba_cache()
    assert os.environ.get("NUMBA_CACHE_DIR") == before, "here is a place already"
