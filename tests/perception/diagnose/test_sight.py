"""Recorded frames are those that the agent saw, and the share of the puck is that of its pixels."""

import mujoco
import numpy as np
import pytest

from envs.demonstrations import Trajectory
from envs.push.env import PushEnv
from envs.push.geometry import CAMERAS, PUCK_HALF_HEIGHT, PUCK_RADIUS
from envs.push.make import make_push
from envs.push.playback import get_simulator_state
from perception.cameras import intrinsics
from perception.diagnose.episodes import frames_of, learned, play, uniform
from perception.diagnose.sight import SIZE, WIDER, observe, survey, widened
from perception.noise import Noise
from perception.rendering import RENDERERS


@pytest.fixture
def base():
    env = PushEnv("push-slot", horizon=6)
    yield env
    env.close()


@pytest.fixture
def recorded(base):
    return play(base, uniform(np.random.default_rng(0)), 2, seed=1)


class Watched:
    """Agent that pushes at random and keeps what it sees."""

    def __init__(self):
        self.rng, self.seen = np.random.default_rng(0), []

    def predict(self, observation, deterministic):
        assert deterministic
        self.seen.append(observation)
        return self.rng.uniform(-1, 1, 2), None


def test_recorded_frames_are_those_of_the_agent(base):
    agent, env = Watched(), make_push("push-slot", obs="pointcloud", horizon=6)
    trajectories = play(env, learned(agent), 2, seed=1)
    found = observe(base, trajectories, ("overhead",), "ray")
    last = [6, 13]  # which the agent does not act on
    np.testing.assert_array_equal(np.delete(found.observations, last, axis=0), agent.seen)
    assert found.visible.all()
    env.close()


def test_frames_are_the_states_of_the_episodes(base, recorded):
    frames = frames_of(base, recorded)
    assert frames.episode.tolist() == [0] * 7 + [1] * 7
    state, _ = base.reset(seed=2)
    np.testing.assert_allclose(frames.state[7], state, atol=1e-6)
    np.testing.assert_allclose(frames.puck[:, :2] - base.goal_position, frames.state[:, 4:6], atol=1e-6)
    assert (frames.puck[7] == base.puck_position).all()


def test_noise_is_seeded_by_the_episode(base, recorded):
    noise = Noise(depth=0.01, position=0.01)
    one, again, other = (observe(base, recorded, ("overhead",), "ray", noise, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.observations, again.observations)
    assert np.abs(one.observations - other.observations).max() > 1e-3


def put(base, puck, end_effector) -> list[Trajectory]:
    """An episode of one frame."""
    base.reset(options={"puck": puck, "end_effector": end_effector})
    return [Trajectory({"puck_pose": base.puck_pose[None]}, states=get_simulator_state(base)[None])]


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("camera", CAMERAS)
def test_a_puck_in_the_open_is_seen_whole(base, renderer, camera):
    found = survey(base, put(base, [0.1, -0.1], [-0.1, 0.2]), camera, renderer)
    assert (found.seen == found.there).all() and (found.there > 60).all()
    offsets = found.points[0] - [0.1, -0.1, base.puck_position[2]]
    assert np.hypot(*offsets[:, :2].T).max() < PUCK_RADIUS + 2e-3
    assert np.abs(offsets[:, 2]).max() < PUCK_HALF_HEIGHT + 2e-3


@pytest.mark.parametrize("renderer", RENDERERS)
def test_what_is_in_front_of_the_puck_takes_its_share(base, renderer):
    """From aside the slot's wall, 5 cm high, hides most of the puck in it."""
    open_, slot = (survey(base, put(base, [x, 0.0], [0.2, 0.2]), "oblique", renderer) for x in (0.15, 0.0))
    assert (open_.seen == open_.there).all()
    assert (slot.seen < slot.there).all() and (slot.seen > 0.1 * slot.there).all()
    assert slot.there[0] == pytest.approx(open_.there[0], rel=0.5), "of what there is to see nothing is lost"


def test_the_border_of_the_image_takes_its_share(monkeypatch):
    monkeypatch.setitem(CAMERAS, "overhead", CAMERAS["overhead"] | {"target": (0.0, 0.4, 0.8)})
    env = PushEnv("push-slot")
    shares = []
    for y in np.linspace(0.2, -0.1, 31):
        found = survey(env, put(env, [0.1, y], [-0.1, 0.2]), "overhead", "ray")
        shares.append(found.seen[0] / found.there[0])
    assert shares[0] == 1.0 and shares[-1] == 0.0 and np.diff(shares).max() < 0.05
    assert sum(0.05 < share < 0.95 for share in shares) >= 3
    env.close()


def test_the_wider_view_has_the_same_pixels_and_the_model_stays_as_it_is(base):
    before = base.model.geom_group.copy(), base.model.cam_fovy.copy()
    copied = widened(base.model, "oblique")
    here, there = (
        intrinsics(base.model, "oblique", SIZE, SIZE),
        intrinsics(copied, "oblique", WIDER * SIZE, WIDER * SIZE),
    )
    assert there.focal == pytest.approx(here.focal) and (there.center[0] - here.center[0]) % 1 == 0
    np.testing.assert_array_equal(base.model.geom_group, before[0])
    np.testing.assert_array_equal(base.model.cam_fovy, before[1])
    assert isinstance(copied, mujoco.MjModel) and copied is not base.model


def test_a_puck_behind_the_camera_is_nowhere(monkeypatch):
    monkeypatch.setitem(CAMERAS, "overhead", CAMERAS["overhead"] | {"target": (5.0, 0.0, 0.8)})
    env = PushEnv("push-slot")
    found = survey(env, put(env, [0.1, 0.0], [-0.1, 0.2]), "overhead", "ray")
    assert not found.seen.any() and not found.there.any() and found.points[0].shape == (0, 3)
    env.close()
