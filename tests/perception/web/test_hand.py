"""The puck that follows the mouse, and the demonstrations made of its path."""

import numpy as np
import pytest

from agents.train import main as train
from envs.demonstrations import load_demonstrations, save_demonstrations
from envs.push.geometry import GRIDS, PUCK_RADIUS, SLOT, WORKSPACE
from envs.push.playback import describe_environment
from perception.visualize.scene import Scene
from perception.visualize.web.demonstration import demonstrate_path
from perception.visualize.web.hand import BEHIND, OBSTACLES, SPEED, STEP, follow, on_table, tip_behind
from perception.visualize.web.stage import on_plane


def clearance(place):
    """Distance of the puck's edge from the nearest box [m]."""
    gaps = [np.maximum(np.abs(place - np.array(c[:2])) - np.array(s[:2]), 0.0) for c, s in OBSTACLES]
    return min(np.linalg.norm(gap) for gap in gaps) - PUCK_RADIUS


def walk(place, corners):
    """Drag the puck to each corner in turn, and return its path."""
    path = [np.array(place, float)]
    for corner in corners:
        for _ in range(200):
            path.append(follow(path[-1], np.array(corner, float)))
            if np.allclose(path[-1], path[-2], atol=1e-5):
                break
    return path


AROUND = [(0.13, -0.2), (0.15, 0.0), (0.0, 0.0)]


def test_speed_and_walls_hold_wherever_the_mouse_goes():
    rng = np.random.default_rng(0)
    for start in GRIDS:
        place = start.copy()
        for _ in range(150):
            target = rng.uniform(-0.6, 0.6, 2)
            moved = follow(place, on_table(target))
            assert np.linalg.norm(moved - place) <= SPEED * STEP + 1e-3
            assert clearance(moved) > -1e-4
            place = moved


def test_a_wall_in_the_way_is_not_passed_but_slid_along():
    left = walk((0.0, -0.2), [(0.0, 0.2)])[-1]  # straight at the slot's outer wall
    assert left[1] == pytest.approx(-SLOT.half_width - SLOT.thickness - PUCK_RADIUS, abs=1e-3)
    assert abs(left[0]) < 1e-3
    slid = walk((-0.02, -0.2), [(0.2, 0.2)])  # obliquely: along the wall, around its end
    assert np.allclose(slid[-1], (0.2, 0.2), atol=1e-3)
    straight = walk((-0.2, -0.3), [(-0.2, 0.3)])
    assert np.allclose(straight[-1], (-0.2, 0.3), atol=1e-3)
    assert len(straight) == pytest.approx(0.6 / (SPEED * STEP), abs=3)


def test_the_pusher_stands_on_the_path_behind_the_puck():
    path = walk(GRIDS[0], AROUND)
    for step in range(1, len(path)):
        tip, puck = tip_behind(path[: step + 1]), path[step]
        assert BEHIND - 1e-9 <= np.linalg.norm(tip - puck) < BEHIND + SPEED * STEP + 1e-3
        assert (WORKSPACE[0] <= tip).all() and (tip <= WORKSPACE[1]).all()
    assert tip_behind(path[:1])[0] > path[0][0]


@pytest.mark.parametrize("height", [0.8, 0.815])
def test_the_line_of_sight_meets_the_plane(height):
    eye, point = np.array([0.5, 0.4, 1.4]), np.array([0.1, -0.1, height])
    for share in (0.3, 0.9, 1.7):
        assert np.allclose(on_plane(eye, eye + share * (point - eye), height), point[:2])
    assert on_plane(eye, eye + np.array([1.0, 0.0, 0.0]), height) is None  # parallel
    assert on_plane(eye, eye + np.array([0.1, 0.0, 0.2]), height) is None  # the plane is behind


@pytest.fixture(scope="module")
def scene():
    made = Scene()
    yield made
    made.close()


def test_a_path_becomes_a_demonstration_that_trains_an_agent(scene, tmp_path):
    path = walk(GRIDS[0], AROUND)
    path = [place for place, before in zip(path[1:], path, strict=False) if np.linalg.norm(place - before) > 5e-4]
    made = demonstrate_path(scene, path)
    state, cloud = made.observations["state"], made.observations["pointcloud"]
    assert made.actions is None and made.horizon == len(path)
    assert np.allclose(state[:-1, 4:6], path, atol=1e-6) and np.allclose(state[-1, 6:8], 0.0)
    assert np.allclose(state[1:, 6:8], np.diff(state[:, 4:6], axis=0) / STEP, atol=1e-3)
    assert np.linalg.norm(state[:, 6:8], axis=1).max() <= SPEED + 0.03
    assert np.allclose(np.linalg.norm(state[1:, :2], axis=1), BEHIND, atol=SPEED * STEP + 2e-3)
    offset = cloud[..., 2:].mean(axis=1) - state[:, 4:6]
    assert np.linalg.norm(offset, axis=1).max() < 0.02  # of the seen centroid from the centre
    assert np.allclose(cloud[..., 2:] - cloud[..., :2], (cloud[..., 2:] - cloud[..., :2])[:, :1], atol=1e-6)
    file = tmp_path / "by-hand.hdf5"
    save_demonstrations(file, [made], describe_environment(scene.env))
    for obs in ("state", "pointcloud"):
        (read,) = load_demonstrations(file, obs)
        assert read.horizon == made.horizon
    words = ["--demonstrations", str(file), "--steps", "60", "--method", "potential+annealing+guide"]
    small = ["--learner.learning-starts", "20", "--evaluation.every", "60", "--evaluation.episodes", "1"]
    train([*words, *small, "--evaluation.final-episodes", "1", "--out", str(tmp_path / "run"), "--parallel", "off"])
    assert (tmp_path / "run" / "result.json").exists()


def test_what_is_no_demonstration_is_refused(scene):
    path = walk(GRIDS[0], AROUND)
    with pytest.raises(ValueError, match=r"not moved; drag it around"):
        demonstrate_path(scene, path[:1])
    with pytest.raises(ValueError, match=r"ends 1\d\.\d cm from the goal; drag it to less than 2 cm"):
        demonstrate_path(scene, path[:40])
    model = scene.base.model
    camera = model.camera("overhead").id
    before = model.cam_quat[camera].copy()
    model.cam_quat[camera] = [0.0, 0.0, 1.0, 0.0]  # looks up
    try:
        with pytest.raises(ValueError, match=r"overhead does not see the puck at step 0 of \d+"):
            demonstrate_path(scene, path)
    finally:
        model.cam_quat[camera] = before
