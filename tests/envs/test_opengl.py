"""Colour images: upright, of their own scene only, and freed in order however a program ends."""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import envs  # noqa: F401 (registers the tasks)
from envs.opengl import Picture, Surface

ROOT = Path(__file__).parents[2]


def make(**settings):
    env = gym.make("PushSlot-v0", render_mode="rgb_array", **settings)
    env.reset(seed=settings.get("grids", 1))
    return env


def reddish(image):
    return (image[..., 0] > 100) & (image[..., 1:].max(axis=-1) < 0.4 * image[..., 0])


def test_the_puck_is_where_the_camera_looks():
    """Seen from beyond the table: towards the robot is up, its left is right."""
    env = make()
    for (x, y), upper, right in (((-0.15, 0.2), True, True), ((0.2, -0.3), False, False)):
        env.reset(options={"puck": [x, y], "end_effector": [0.0, 0.0]})
        image = env.render()
        assert image.shape == (480, 640, 3) and image.dtype == np.uint8
        rows, columns = np.nonzero(reddish(image))
        assert len(rows) > 50
        assert (rows.mean() < 240) == upper and (columns.mean() > 320) == right
    env.close()
    env.close()


def test_training_and_evaluation_draw_what_a_lone_environment_draws():
    """Alternately, with clouds by OpenGL beside them; closing one, or drawing again after it, disturbs nobody."""

    def steps(env):
        for _ in range(3):
            env.step(np.array([0.5, -0.5]))
            yield env.render()

    alone = []
    for grids in (1, 2):
        env = make(grids=grids)
        alone.append(list(steps(env)))
        env.close()
    assert not np.array_equal(alone[0], alone[1])
    clouds = make(obs="pointcloud", perception={"renderer": "gl", "width": 96})
    cloud, _ = clouds.reset(seed=0)
    pair = [make(grids=grids) for grids in (1, 2)]
    for images in zip(*map(steps, pair), *alone, strict=True):
        np.testing.assert_array_equal(images[0], images[2])
        np.testing.assert_array_equal(images[1], images[3])
        np.testing.assert_array_equal(clouds.reset(seed=0)[0], cloud)
    pair[0].close()
    np.testing.assert_array_equal(pair[1].render(), alone[1][-1])
    np.testing.assert_array_equal(pair[0].render(), alone[0][-1])
    np.testing.assert_array_equal(clouds.reset(seed=0)[0], cloud)
    for env in (*pair, clouds):
        env.close()
    assert not Surface._live


def test_no_image_without_being_asked_for():
    env = gym.make("PushSlot-v0").unwrapped
    env.reset(seed=0)
    assert env.render() is None and env._picture is None


def test_unknown_camera():
    env = make()
    with pytest.raises(KeyError, match="overhead"):
        Picture(env.unwrapped.model, 64, 48).draw(env.unwrapped.data, "nowhere")
    with pytest.raises(ValueError, match=r"unknown camera 'nowhere'; the model has .*overhead"):
        make(camera="nowhere")


ENDS = {
    "nothing closed": "",
    "closed twice": "first.close(); first.close(); second.close(); second.close()",
    "dropped": "del first, second",
}
SCRIPT = """
import envs, gymnasium
first = gymnasium.make("PushSlot-v0", render_mode="rgb_array")
second = gymnasium.make(
    "PushSlot-v0", obs="pointcloud", perception={{"renderer": "gl"}}, render_mode="rgb_array", disable_env_checker=True
)
for env in (first, second):
    env.reset(seed=0)
    assert env.render().any()
{end}
"""


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_said_at_exit(end):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=ENDS[end])], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0
    assert done.stderr == ""


FORK = """
import os, envs, gymnasium
env = gymnasium.make("PushSlot-v0", render_mode="rgb_array")
env.reset(seed=0)
assert env.render().any()
child = os.fork()
if child == 0:
    try:
        env.render()
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_of_a_process_that_drew_says_why_it_cannot():
    """It would wait for ever for the driver's threads, which a fork leaves behind.

    In a process of its own: that of a whole test run may be too large to fork.
    """
    done = subprocess.run([sys.executable, "-c", FORK], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "spawn" in done.stdout and len(done.stdout.splitlines()) == 1


def test_images_of_other_libraries_stay_what_they_are():
    """They draw into whatever context is current; Gymnasium's here, with pictures and clouds of ours in between."""
    other = gym.make("InvertedPendulum-v5", render_mode="rgb_array", width=64, height=64)
    other.reset(seed=0)
    alone = other.render()
    assert alone.std() > 1
    picture, clouds = make(), make(obs="pointcloud", perception={"renderer": "gl", "width": 96})
    for env in (picture, clouds):
        env.step(np.zeros(2))
        env.render()
        np.testing.assert_array_equal(other.render(), alone)
        env.close()
        np.testing.assert_array_equal(other.render(), alone)
    other.close()
