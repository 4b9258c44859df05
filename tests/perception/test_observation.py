"""The observation is the puck relative to end effector and goal, in every frame."""

import sys

import gymnasium
import mujoco
import numpy as np
import pytest

from perception.observation import PointCloudObservation
from perception.rendering import RENDERERS

LID = '<body name="lid" mocap="true" pos="1 1 1"><geom type="box" size=".15 .15 .005"/></body>'


class Table(gymnasium.Env):
    """A puck on a table that is moved by hand, and a lid that can hide it."""

    observation_space = gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    end_effector_position = np.array([0.1, 0.2, 0.82])
    goal_position = np.array([-0.1, 0.05])

    def __init__(self, build, rebuilds: bool = False):
        self.build, self.rebuilds = build, rebuilds
        self.model, self.data = build(after=LID)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.rebuilds:
            self.model, self.data = self.build(after=LID)
        mujoco.mj_resetData(self.model, self.data)
        self.cover(bool(options and options.get("hidden")))
        return np.zeros(8, np.float32), {"is_success": False}

    def step(self, action):
        self.data.qpos[:2] += 0.05 * np.asarray(action)
        mujoco.mj_kinematics(self.model, self.data)
        return np.zeros(8, np.float32), 1.0, True, False, {"is_success": True}

    def cover(self, covered: bool) -> None:
        self.data.mocap_pos[0] = [*self.data.qpos[:2], 0.85] if covered else [1, 1, 1]
        mujoco.mj_forward(self.model, self.data)


def wrap(scene, rebuilds=False, **settings) -> PointCloudObservation:
    return PointCloudObservation(Table(scene, rebuilds), **settings)


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("cameras", [("overhead",), ("overhead", "oblique")])
@pytest.mark.parametrize("num_points", [1, 20, 400])
def test_points_lie_on_the_puck(scene, renderer, cameras, num_points):
    env = wrap(scene, renderer=renderer, cameras=cameras, num_points=num_points)
    observation, info = env.reset()
    for action in ([0.0, 0.0], [1.0, -1.0], [-0.5, 0.3]):
        assert observation in env.observation_space and observation.shape == (num_points, 4)
        assert info["puck_visible"] is True
        puck = env.unwrapped.data.body("puck_main").xpos
        offsets = env.points_world - puck
        assert (np.hypot(offsets[:, 0], offsets[:, 1]) < 0.03 + 1e-3).all()
        assert (np.abs(offsets[:, 2]) < 0.015 + 1e-3).all()
        goal, effector = env.unwrapped.goal_position, env.unwrapped.end_effector_position[:2]
        np.testing.assert_allclose(observation[:, :2], env.points_world[:, :2] - effector, atol=1e-6)
        np.testing.assert_allclose(observation[:, 2:], env.points_world[:, :2] - goal, atol=1e-6)
        observation, *outcome, info = env.step(action)
        assert outcome == [1.0, True, False] and info["is_success"] is True
    env.close()
    env.close()


def test_hidden_frames_show_what_was_seen_last(scene):
    env = wrap(scene)
    seen, info = env.reset()
    env.unwrapped.cover(True)
    hidden, *_, info = env.step([0.0, 0.0])
    assert info["puck_visible"] is False and env.hidden_frames == 1
    np.testing.assert_array_equal(hidden, seen)
    # The points stay in the world while the end effector moves.
    env.unwrapped.end_effector_position = np.array([0.0, 0.0, 0.82])
    moved, *_ = env.step([0.0, 0.0])
    np.testing.assert_allclose(moved[:, :2], seen[:, :2] + [0.1, 0.2], atol=1e-6)
    np.testing.assert_array_equal(moved[:, 2:], seen[:, 2:])
    env.unwrapped.cover(False)
    *_, info = env.step([0.0, 0.0])
    assert info["puck_visible"] is True and env.hidden_frames == 2


def test_two_cameras_in_one_pose(scene):
    """Every point is there twice, and where little of the puck is seen fewer are distinct than the space declares."""
    twin = '<camera name="twin" pos="0.02 0.03 1.5" xyaxes="0 -1 0 1 0 0" fovy="45"/>'
    env = PointCloudObservation(Table(lambda after: scene(after=LID + twin)), ("overhead", "twin"), width=34, height=34)
    observation, info = env.reset()
    assert info["puck_visible"] and len(np.unique(env._object_points("puck_main"), axis=0)) < 20 < len(
        env._object_points("puck_main")
    )
    for _ in range(3):
        assert observation in env.observation_space
        observation, *_ = env.step([0.1, 0.0])


@pytest.mark.untyped
def test_points_that_are_not_finite_do_not_count(scene, monkeypatch):
    """A sensor that reports no distance as NaN or inf; everything may lie in the workspace."""
    env = wrap(scene, workspace=np.array([[-np.inf] * 3, [np.inf] * 3]))
    rendered = env._renderers["puck_main", "overhead"].render
    broken: list[tuple[slice, float]] = []

    def render(data):
        depth, mask = rendered(data)
        rows = np.argwhere(mask)
        for part, value in broken:
            depth[tuple(rows[part].T)] = value
        return depth, mask

    monkeypatch.setattr(env._renderers["puck_main", "overhead"], "render", render)
    env.reset()
    broken[:] = [(slice(1, None, 3), np.nan), (slice(2, None, 3), np.inf)]
    observation, *_, info = env.step([0.0, 0.0])
    assert info["puck_visible"] is True and observation in env.observation_space and np.isfinite(observation).all()
    assert np.hypot(*(env.points_world - env.unwrapped.data.body("puck_main").xpos)[:, :2].T).max() < 0.031
    broken[:] = [(slice(None), np.nan)]
    hidden, *_, info = env.step([0.0, 0.0])
    assert info["puck_visible"] is False and env.hidden_frames == 1
    np.testing.assert_array_equal(hidden, observation)


def test_a_puck_not_seen_since_the_reset_is_at_the_end_effector(scene):
    env = wrap(scene)
    env.reset()
    observation, info = env.reset(options={"hidden": True})
    assert info["puck_visible"] is False and env.hidden_frames == 1
    np.testing.assert_allclose(observation[:, :2], 0.0, atol=1e-6)
    assert (np.linalg.norm(observation[:, 2:], axis=-1) > 0.1).all()  # far from solved


@pytest.mark.parametrize("hidden", [True, False])
def test_the_first_step_repeats_what_the_reset_said(scene, hidden):
    """Also where the environment goes on from a saved state."""
    env, other = wrap(scene), wrap(scene)
    env.reset(options={"hidden": hidden})
    other.reset()
    other.set_state(env.get_state())
    for wrapper in (env, other):
        *_, first = wrapper.step([0.0, 0.0])
        *_, second = wrapper.step([0.0, 0.0])
        assert first["reset_info"] == {"puck_visible": not hidden} and "reset_info" not in second


def test_a_puck_outside_the_workspace_is_hidden(scene):
    env = wrap(scene, workspace=((-1.0, -1.0, 0.9), (1.0, 1.0, 1.2)))
    observation, info = env.reset()
    assert np.isfinite(observation).all() and info["puck_visible"] is False


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_rebuilt_model_is_noticed(scene, renderer):
    env = wrap(scene, rebuilds=True, renderer=renderer)
    first, _ = env.reset()
    models = set()
    for _ in range(3):
        observation, _ = env.reset()
        np.testing.assert_array_equal(observation, first)
        models.add(env._model)
        assert env._model is env.unwrapped.model
    assert len(models) == 3
    env.close()


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cameras": ("side",)}, "unknown camera 'side'"),
        ({"cameras": "overhead"}, "sequence"),
        ({"cameras": ()}, "at least one camera"),
        ({"num_points": 0}, "num_points is 0"),
        ({"num_points": 2.5}, "num_points is 2.5; give a whole number"),
        ({"width": 0}, "images of 0 × 128 pixels; give a whole number"),
        ({"height": 64.5}, "images of 128 × 64.5 pixels"),
        ({"workspace": ((1.0, 1.0, 1.0), (0.0, 2.0, 2.0))}, "give a lower and an upper corner"),
        ({"workspace": (0.0, 1.0)}, "give a lower and an upper corner"),
        ({"renderer": "vulkan"}, "unknown renderer"),
        ({"objects": ["cube"]}, "unknown body"),
    ],
)
def test_bad_settings_are_refused_at_once(scene, settings, message):
    with pytest.raises(ValueError, match=message):
        wrap(scene, **settings)


@pytest.mark.parametrize("cameras", [("overhead",), ("overhead", "oblique")])
def test_the_real_task(cameras):
    import envs  # noqa: F401  (registers the tasks)

    env = gymnasium.make("PushSlot-v0", obs="pointcloud", grids=2, perception={"cameras": cameras})
    env.action_space.seed(0)
    base = env.unwrapped
    for grid in (0, 1):
        observation, info = env.reset(seed=grid, options={"grid": grid})
        for _ in range(5):
            assert observation in env.observation_space
            if info["puck_visible"]:
                relative = base.puck_position[:2] - base.goal_position
                np.testing.assert_allclose(observation[:, 2:].mean(axis=0), relative, atol=0.03)
            observation, *_, info = env.step(env.action_space.sample())
    assert env.get_wrapper_attr("hidden_frames") < 3
    env.close()
    env.close()


def test_renderers_agree_on_the_real_task():
    import envs  # noqa: F401

    env = gymnasium.make("PushSlot-v0", grids=2).unwrapped
    wrapped = [PointCloudObservation(env, renderer=renderer) for renderer in RENDERERS]
    for seed in range(4):
        wrapped[0].reset(seed=seed)
        for wrapper in wrapped:
            wrapper._observe({})
        clouds = [wrapper._object_points("puck_main") for wrapper in wrapped]
        assert abs(len(clouds[0]) - len(clouds[1])) <= 2
        np.testing.assert_allclose(clouds[0].mean(axis=0), clouds[1].mean(axis=0), atol=1e-3)
    for wrapper in wrapped:
        wrapper.close()


def test_missing_open3d_stops_the_construction_in_one_line(scene, monkeypatch):
    monkeypatch.setitem(sys.modules, "open3d", None)  # what Python itself does to forbid an import
    with pytest.raises(ImportError, match="Open3D") as error:
        wrap(scene)
    assert "\n" not in str(error.value) and "install open3d" in str(error.value)
