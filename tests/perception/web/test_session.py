"""What the page shows, without a browser: meshes, frames, the potential, episodes and runs."""

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import assets
from agents.train import main as train
from envs.push.geometry import PUCK_HALF_HEIGHT, PUCK_RADIUS, SLOT
from envs.push.playback import get_simulator_state
from perception.cameras import camera_to_world
from perception.rendering import make_renderer
from perception.visualize.config import VisualizeConfig
from perception.visualize.web.episode import replayed
from perception.visualize.web.meshes import MOST_FACES, geom_meshes
from perception.visualize.web.session import Session, depth_image
from perception.visualize.web.tabs.run import failures_first
from perception.visualize.web.training import success_curve
from shaping.reward import shaped_reward

AGENT = assets.path("policies/push-slot-1-pointcloud")


@pytest.fixture(scope="module")
def session():
    made = Session(VisualizeConfig(run=AGENT))
    yield made
    made.close()


@pytest.fixture(scope="module")
def episode(session):
    return session.play("agent", 3, grid=0)


def test_meshes_are_those_of_the_model(session):
    model = session.scene.base.model
    meshes = {mesh.name: mesh for mesh in geom_meshes(model)}
    bodies = {mesh.name.split("/")[0] for mesh in meshes.values()}
    assert {"world", "table", "puck_main", "robot0_link0", "robot0_link7", "gripper0_right_pusher"} <= bodies
    assert not any(np.ptp(mesh.vertices, axis=0).max() > 2 for mesh in meshes.values())  # the room is left out
    for mesh in meshes.values():
        geom = int(mesh.name.split("/")[1])
        assert 0 < len(mesh.faces) <= MOST_FACES and mesh.faces.max() < len(mesh.vertices)
        center, half = model.geom_aabb[geom].reshape(2, 3)
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
        local = (mesh.vertices - model.geom_pos[geom]) @ rotation.reshape(3, 3)
        assert np.allclose(local.min(axis=0), center - half, atol=0.01)
        assert np.allclose(local.max(axis=0), center + half, atol=0.01)
    puck = next(mesh for name, mesh in meshes.items() if name.startswith("puck"))
    assert np.allclose(np.abs(puck.vertices[:, 2]), PUCK_HALF_HEIGHT)
    rim = np.linalg.norm(puck.vertices[:, :2], axis=1)
    assert np.isclose(rim, PUCK_RADIUS).sum() > 20 and puck.color[0] > 2 * puck.color[1]  # red
    walls = {tuple(np.round(mesh.vertices.mean(axis=0)[:2], 3)) for name, mesh in meshes.items() if "world" in name}
    assert {tuple(np.round(center[:2], 3)) for center, _ in SLOT.walls().values()} <= walls


def test_frames_show_the_recorded_states(session, episode):
    session.set_episode(episode)
    assert episode.success and episode.length < 60 and len(episode.actions) == episode.length
    for step in (0, episode.length // 2):
        session.step = step
        frame = session.frame()
        assert np.allclose(get_simulator_state(session.scene.base), episode.states[step])
        cloud = frame.observations["pointcloud"]
        assert np.allclose(cloud, episode.observations["pointcloud"][step], atol=1e-6)
        assert frame.potential == pytest.approx(session.potential(cloud[None])[0], abs=1e-6)
        offset = session.scene.base.puck_position[:2] - session.scene.base.goal_position
        seen = session.potential.goals.extract(cloud) - offset  # the seen centroid is not the centre
        assert np.linalg.norm(session.demonstrated() - frame.chosen - seen, axis=1).min() < 1e-5
        assert depth_image(frame.view).shape == (480, 480, 3)


def test_curves_are_those_of_the_episode(session, episode):
    session.set_episode(episode)
    rows = session.signals
    assert set(rows) == {"Φ", "V_d", "Ṽ_g", "r̄"}  # the shipped run has no checkpoint, so no Q
    clouds = episode.observations["pointcloud"]
    success = np.arange(len(clouds)) == episode.length
    assert np.allclose(rows["Φ"], session.potential(clouds, success), atol=1e-6)
    reward = np.zeros(episode.length)
    reward[-1] = 1.0
    gamma = session.potential.gamma
    assert np.allclose(rows["r̄"][:-1], shaped_reward(reward, rows["Φ"][:-1], rows["Φ"][1:], gamma), atol=1e-6)
    discounted = (gamma ** np.arange(episode.length) * rows["r̄"][:-1]).sum()
    ends = gamma ** (episode.length - 1) + gamma**episode.length * rows["Φ"][-1] - rows["Φ"][0]
    assert discounted == pytest.approx(ends, abs=1e-5)


def test_the_share_seen_falls_when_the_arm_hides_the_puck(session):
    base, camera = session.scene.base, session.camera
    session.set_episode(session.play("expert", 0, grid=0))
    session.step = 0
    free = session.frame()
    assert free.unhidden == pytest.approx(1.0) and free.visible
    pose = camera_to_world(base.model, base.data, camera)
    middle = (pose[:3, 3] + 3 * base.puck_position) / 4
    rod = base.model.geom("slot_back").id  # put between camera and puck
    before = base.model.geom_pos[rod].copy()
    base.model.geom_pos[rod] = middle
    try:
        hidden = session.frame()
    finally:
        base.model.geom_pos[rod] = before
    assert hidden.unhidden < 0.7 and hidden.view.mask.sum() < free.view.mask.sum()
    alone = make_renderer("gl", base.model, camera, width=128, height=128)
    session.frame()
    assert free.view.mask.sum() == pytest.approx(alone.render(base.data)[1].sum(), abs=2)
    alone.close()


def test_a_camera_that_is_moved_sees_from_there(session):
    base = session.scene.base
    session.frame()
    pose = camera_to_world(base.model, base.data, "overhead")
    wxyz = np.empty(4)
    mujoco.mju_mat2Quat(wxyz, pose[:3, :3].reshape(-1))
    session.set_camera(pose[:3, 3] + [0.0, 0.1, 0.05], wxyz)
    seen = session.frame()
    moved = camera_to_world(base.model, base.data, "overhead")
    assert np.allclose(moved[:3, :3], pose[:3, :3], atol=1e-6)
    assert np.allclose(moved[:3, 3], pose[:3, 3] + [0.0, 0.1, 0.05])
    assert np.linalg.norm(seen.view.points[:, :2].mean(axis=0) - base.puck_position[:2]) < 0.02  # it knows its pose
    away = np.empty(4)
    mujoco.mju_mulQuat(away, wxyz, np.array([0.0, 0.0, 1.0, 0.0]))  # half a turn about its y axis
    session.set_camera(pose[:3, 3], away)
    assert session.frame().unhidden == 0.0 and not session.frame().visible
    session.set_scene("gl", ("oblique",))
    assert session.frame().unhidden > 0.5
    session.set_scene("ray", ("overhead",))
    assert np.allclose(camera_to_world(session.scene.base.model, session.scene.base.data, "overhead"), pose)


def test_another_potential_is_taken_whole_or_not_at_all(session):
    before = session.potential
    with pytest.raises(ValueError, match=r"nowhere\.hdf5: no such file"):
        session.set_potential("state", "sum", 0.1, assets.path("demonstrations") / "nowhere.hdf5")
    assert session.potential is before
    config = session.config
    session.set_potential("state", "product", 0.08)
    session.set_potential("state", "sum", 0.1, assets.path("demonstrations/by-hand.hdf5"))
    assert (session.obs, session.potential.combine, session.potential.radius) == ("state", "sum", 0.1)
    assert len(session.demonstrated()) == 72
    landscape = session.landscape()
    at = np.argmin(np.abs(landscape.x)), np.argmin(np.abs(landscape.y))
    assert landscape.potential[at] == 1.0  # on the goal
    assert np.isnan(landscape.potential).any() and np.nanmax(landscape.potential) <= 2.0
    session.config = config
    session.set_potential("pointcloud", "product", 0.08)


def test_frames_without_the_puck_keep_the_last_potential(session, episode):
    """As in a training: nothing is shaped before the first sight, and Φ is the one last seen."""
    visible = np.ones(episode.length + 1, bool)
    visible[:2] = visible[8:11] = False
    session.set_episode(replace(episode, visible=visible))
    rows, gamma = session.signals, session.potential.gamma
    phi = session.potential(episode.observations["pointcloud"])
    assert np.allclose(rows["Φ"][8:11], phi[7]) and np.allclose(rows["Φ"][2:8], phi[2:8])
    assert np.allclose(rows["r̄"][:2], 0.0) and np.allclose(rows["r̄"][8:10], (gamma - 1) * phi[7])
    assert np.isnan(rows["V_d"][8:11]).all() and np.isfinite(rows["V_d"][2:8]).all()
    session.step = 9
    frame = session.frame()
    assert not frame.visible and frame.chosen is None and frame.potential == pytest.approx(phi[7])


def test_what_does_not_end_in_the_goal_is_no_success(session):
    short = session.demonstration.until(20)
    assert not replayed(session.scene, short, "short").success
    assert replayed(session.scene, session.demonstration, "whole").success


def test_cameras_stay_fused_until_another_is_chosen():
    made = Session(VisualizeConfig(cameras=("overhead", "oblique")))
    try:
        alone = made.frame().view.points
        made.set_scene("ray", ("overhead", "oblique"))
        assert made.config.cameras == ("overhead", "oblique") and made.camera == "overhead"
        assert np.allclose(made.frame().view.points, alone)
        with pytest.raises(ValueError, match="unknown camera 'nowhere'"):
            made.set_scene("ray", ("nowhere",))
        assert made.config.cameras == ("overhead", "oblique") and made.frame().visible
    finally:
        made.close()


def test_failures_come_first(session, episode):
    still = session.policies["guide"]
    session.set_potential("state", "product", 0.001)  # out of reach, so that the guide stands still
    failed = session.play("guide", 1)
    session.set_potential("pointcloud", "product", 0.08)
    assert still.obs == "pointcloud" and not failed.success and failed.length == 150
    assert failures_first([episode, failed]) == [failed, episode]


@pytest.mark.slow
def test_a_run_with_a_checkpoint_shows_q_and_one_that_goes_on_its_newest_agent(tmp_path):
    run = tmp_path / "run"
    words = "--obs state --steps 30 --parallel off --learner.learning-starts 20 --evaluation.every 30"
    train([*words.split(), *["--evaluation.episodes", "1", "--evaluation.final-episodes", "1", "--out"], str(run)])
    session = Session(VisualizeConfig(run=run))
    try:
        start = {"state": np.zeros(8, np.float32)}
        before = session.policies["agent"].begin()(start)
        train(["--resume", str(run), "--steps", "60"])
        assert np.array_equal(session.policies["agent"].begin()(start), before)
        session.load_agent(run)
        assert not np.array_equal(session.policies["agent"].begin()(start), before)
        session.set_episode(session.play("agent", 0))
        rows = session.signals
        assert np.isfinite(rows["Q"][:-1]).all() and len(rows["Q"]) == session.episode.length + 1
    finally:
        session.close()
    steps, rates = success_curve(run)
    assert len(steps) == 2 and steps[-1] == 60 and ((rates >= 0) & (rates <= 1)).all()
    assert len(success_curve(tmp_path)[0]) == 0  # no evaluation yet
