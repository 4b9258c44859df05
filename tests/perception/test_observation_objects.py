"""Clouds of the objects of robosuite, Gymnasium-Robotics and an own model lie where the simulation has the objects."""

import pickle

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from scipy.spatial import ConvexHull

import envs.simulator  # noqa: F401

# isort: split
import robosuite
from robosuite.wrappers import GymWrapper

from perception.observation import PointCloudObservation
from perception.rendering import RENDERERS
from perception.rendering.geoms import drawn_geoms, object_bodies
from perception.simulation import simulation
from shaping.goals import CloudGoals

pytestmark = pytest.mark.filterwarnings("ignore")  # robosuite's and Gymnasium-Robotics' own
GRIP = "gripper0_right_grip_site"


def stock(task: str, **settings) -> gymnasium.Env:
    if task == "FetchPush-v4":
        import gymnasium_robotics

        gymnasium.register_envs(gymnasium_robotics)
        return gymnasium.make(task)
    headless = {"has_renderer": False, "has_offscreen_renderer": False, "use_camera_obs": False, "hard_reset": False}
    return GymWrapper(robosuite.make(task, robots="Panda", seed=0, **{**headless, **settings}))


def outside_box(points, data, body, half):
    """Signed distance from the surface of a box [m]."""
    beyond = np.abs((points - data.body(body).xpos) @ data.body(body).xmat.reshape(3, 3)) - half
    return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_robosuites_cubes_have_a_cloud_each(renderer):
    """From a fixed camera and that of the wrist, which moves."""
    env = PointCloudObservation(
        stock("Stack"),
        ["agentview", "robot0_eye_in_hand"],
        num_points=40,
        renderer=renderer,
        objects=["cubeA", "cubeB"],
        relative_to=[GRIP, "cubeB"],
    )
    assert env.observation_space.shape == (80, 8)
    eyes = []
    observation, info = env.reset(seed=0)
    for _ in range(5):
        _, data = simulation(env)
        assert info["puck_visible"] and observation in env.observation_space
        for index, (cube, half) in enumerate([("cubeA_main", 0.02), ("cubeB_main", 0.025)]):
            rows = slice(40 * index, 40 * index + 40)
            assert np.abs(outside_box(env.points_world[rows], data, cube, half)).max() < 1e-3
            assert (observation[rows, :2] == np.eye(2)[index]).all()
        for columns, anchor in ((slice(2, 5), data.site(GRIP)), (slice(5, 8), data.body("cubeB_main"))):
            np.testing.assert_allclose(observation[:, columns], env.points_world - anchor.xpos, atol=1e-6)
        eyes.append(data.camera("robot0_eye_in_hand").xpos.copy())
        observation, *_, info = env.step(np.array([0.5, -0.5, 0.5, 0, 0, 0, 0]))
    assert np.linalg.norm(np.diff(eyes, axis=0), axis=1).min() > 1e-3
    env.close()


def test_a_hard_reset_of_robosuite_is_noticed():
    env = PointCloudObservation(stock("Lift", hard_reset=True), ["agentview"], objects=["cube"])
    models = []
    for _ in range(2):
        env.reset()
        model, data = simulation(env)
        half = model.geom("cube_g0_vis").size
        assert np.abs(outside_box(env.points_world, data, "cube_main", half)).max() < 1e-3
        models.append(model)
    assert models[0] is not models[1]
    env.close()


@pytest.mark.parametrize("renderer", RENDERERS)
def test_fetch_push(renderer):
    """Relative to gripper and goal in space, the goals of which are `CloudGoals`."""
    env = PointCloudObservation(
        stock("FetchPush-v4"),
        ["external_camera_0"],
        renderer=renderer,
        objects=["object0"],
        relative_to=["robot0:grip", "goal"],
    )
    goals = CloudGoals(num_points=20, dims=3)
    assert env.observation_space.shape == goals.observation_shape
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        for _ in range(3):
            data = env.unwrapped.data
            assert info["puck_visible"]
            assert np.abs(outside_box(env.points_world, data, "object0", 0.025)).max() < 1e-3
            seen = env.points_world.mean(axis=0)
            np.testing.assert_allclose(goals.extract(observation), seen - env.unwrapped.goal, atol=1e-6)
            np.testing.assert_allclose(observation[:, :3].mean(axis=0), seen - data.site("robot0:grip").xpos, atol=1e-6)
            observation, *_, info = env.step(env.action_space.sample())
    env.close()


def test_fetch_push_keeps_gymnasiums_contract():
    env = PointCloudObservation(stock("FetchPush-v4"), ["external_camera_0"], objects=["object0"], relative_to=["goal"])
    check_env(env, skip_render_check=True)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    np.testing.assert_array_equal(again.reset(seed=1)[0], env.reset(seed=1)[0])
    for each in (env, again):
        each.close()


@pytest.mark.parametrize(
    ("task", "thing", "cameras"),
    [
        ("Door", "Door", ["agentview", "frontview"]),
        ("NutAssemblySquare", "SquareNut", ["agentview", "birdview"]),
        ("PickPlaceCan", "Can", ["agentview", "robot0_eye_in_hand"]),
        ("FetchPush-v4", "robot0:gripper_link", ["external_camera_0"]),
    ],
)
def test_bodies_with_children_and_meshes(task, thing, cameras):
    """Door and nut are of many primitives, on four bodies and on one; can and gripper are meshes.

    OpenGL's points lie where `mj_ray`, over all drawn geoms, meets the object, and the cast rays see the same.
    """
    env = stock(task)
    by = {name: PointCloudObservation(env, cameras, renderer=name, objects=[thing]) for name in RENDERERS}
    for seed in range(2):
        by["gl"].reset(seed=seed)
        by["ray"]._observe({})
        model, data = simulation(env)
        inside = object_bodies(model, thing)
        group = model.geom_group.copy()
        for camera in cameras:
            (depth, mask), (expected, seen) = (by[name]._renderers[thing, camera].render(data) for name in RENDERERS)
            apart = (mask ^ seen) | (mask & seen & (np.abs(depth - expected) > 1e-3))
            assert apart.sum() <= 1 + 0.002 * seen.sum()  # at the edges of the parts
        model.geom_group[:] = np.where(drawn_geoms(model), 1, 5)
        met = np.full(1, -1, np.int32)
        for point in by["gl"].points_world:
            gaps = []
            for camera in cameras:
                eye = data.camera(camera).xpos
                ray, groups = point - eye, np.array([0, 1, 0, 0, 0, 0], np.uint8)
                hit = mujoco.mj_ray(model, data, eye, ray / np.linalg.norm(ray), groups, 1, -1, met)
                gaps.append(abs(hit - np.linalg.norm(ray)) if inside[model.geom_bodyid[met[0]]] else np.inf)
            assert min(gaps) < 1e-3
        model.geom_group[:] = group
    for wrapper in by.values():
        wrapper._close_renderers()
    env.close()


class Own(gymnasium.Env):
    """A tetrahedron as a mesh and a ball on a child body, each of which a lid can hide."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    xml = """<mujoco>
      <asset><mesh name="wedge" vertex="-.05 -.05 -.05  .05 -.05 -.05  0 .05 -.05  0 0 .08"/></asset>
      <worldbody>
        <geom type="plane" size="2 2 .1"/>
        <camera name="top" pos="0 0 1.5"/> <camera name="side" pos="0 -1.2 .6" xyaxes="1 0 0 0 .4 1"/>
        <site name="corner" pos=".3 .2 .1"/>
        <body name="wedge" pos=".2 0 .2"><freejoint/><geom type="mesh" mesh="wedge"/></body>
        <body name="stand" pos="-.2 0 .1"><geom type="cylinder" size=".02 .1"/>
          <body name="ball" pos="0 0 .15"><geom size=".05"/></body></body>
        <body name="lid" mocap="true" pos="0 0 -1"><geom type="box" size=".15 .15 .005"/></body>
      </worldbody>
    </mujoco>"""

    def __init__(self):
        self.model = mujoco.MjModel.from_xml_string(self.xml)
        self.data = mujoco.MjData(self.model)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[3:] = self.np_random.normal(size=4)
        return self.cover(options and options["lid"]), {}

    def step(self, action):
        return self.cover(None), 0.0, False, False, {}

    def cover(self, what):
        mujoco.mj_kinematics(self.model, self.data)
        self.data.mocap_pos[0] = [0, 0, -1] if what is None else [*self.data.body(what).xpos[:2], 0.5]
        mujoco.mj_forward(self.model, self.data)
        return np.zeros(1, np.float32)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_mesh_of_known_shape_and_the_tree_of_a_body(renderer):
    env = PointCloudObservation(
        Own(), ["top", "side"], 60, renderer, objects=["wedge", "stand"], relative_to=["corner"]
    )
    for seed in range(10):
        env.reset(seed=seed)
        model, data = simulation(env)
        wedge, stand = env.points_world.reshape(2, 60, 3)
        geom = model.body("wedge").geomadr[0]
        hull = ConvexHull(model.mesh_vert.astype(float))  # convex: on it, the farthest plane is at distance 0
        local = (wedge - data.geom_xpos[geom]) @ data.geom_xmat[geom].reshape(3, 3)
        assert np.abs((local @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1)).max() < 1e-3
        ball = np.abs(np.linalg.norm(stand - data.body("ball").xpos, axis=1) - 0.05) < 1e-3
        radius, top = np.hypot(*(stand - data.body("stand").xpos)[:, :2].T), np.abs(stand[:, 2] - 0.2) < 1e-3
        post = (np.abs(radius - 0.02) < 1e-3) | (top & (radius < 0.021))
        assert (ball | post).all() and ball.any() and post.any()
    env.close()


def test_one_object_hidden_keeps_its_own_last_points():
    """Copies and restored states too."""
    env = PointCloudObservation(Own(), ["top"], 10, objects=["wedge", "ball"], relative_to=["corner"])
    env.reset(seed=0)
    ball = env.points_world[10:]
    observation, info = env.reset(seed=1, options={"lid": "ball"})
    assert info["puck_visible"] is False and env.hidden_frames == 1
    np.testing.assert_allclose(observation[10:, 2:], 0.0, atol=1e-6)  # not seen since the reset: at the first position
    copy, other = pickle.loads(pickle.dumps(env)), PointCloudObservation(Own(), ["top"], 10, objects=["wedge", "ball"])
    other.reset(seed=1)
    other.set_state(env.get_state())
    wedge = env.points_world[:10]
    for wrapper in (env, copy, other):
        wrapper.unwrapped.cover("wedge")
        wrapper._observe(info)
        assert info["puck_visible"] is False and wrapper.hidden_frames == 2
        np.testing.assert_array_equal(wrapper.points_world[:10], wedge)
        np.testing.assert_array_equal(wrapper.points_world[10:], ball)
        wrapper.step(np.zeros(1))
        assert wrapper.hidden_frames == 2
        wrapper.close()


def test_positions_by_name_and_by_function():
    anchors = ["ball", "corner", lambda env: env.unwrapped.data.body("stand").xpos]
    env = PointCloudObservation(Own(), ["top"], objects=["wedge"], relative_to=anchors, plane=True)
    observation, _ = env.reset(seed=0)
    at = np.array([[-0.2, 0.0], [0.3, 0.2], [-0.2, 0.0]])
    np.testing.assert_allclose(observation, (env.points_world[:, None, :2] - at).reshape(20, 6), atol=1e-6)
    world = PointCloudObservation(env.unwrapped, ["top"], objects=["wedge"])
    np.testing.assert_allclose(world.reset(seed=0)[0], world.points_world, atol=1e-6)
    cropped = PointCloudObservation(
        env.unwrapped, ["top"], objects=["wedge"], workspace=[[0.2, -1.0, 0.0], [1.0, 1.0, 1.0]], relative_to=["world"]
    )
    assert cropped.reset(seed=0)[0][:, 0].min() >= 0.2 > world.points_world[:, 0].min()


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objects": ["cube"]}, "unknown body 'cube'; the model has world, wedge"),
        ({"objects": []}, "at least one body"),
        ({"objects": "wedge"}, "objects is 'wedge'; give a sequence"),
        ({"objects": ["ball", "ball"]}, "each of them once"),
        ({"relative_to": ["tip"]}, "unknown position 'tip'; give a function, an attribute of Own, .* corner"),
        ({"relative_to": "corner"}, "relative_to is 'corner'; give a sequence"),
    ],
)
def test_bad_settings_are_refused_at_once(settings, message):
    with pytest.raises(ValueError, match=message):
        PointCloudObservation(Own(), ["top"], **({"objects": ["wedge"]} | settings))


def test_an_environment_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="CartPoleEnv has no MuJoCo simulation; give it the attributes model and data"):
        PointCloudObservation(gymnasium.make("CartPole-v1"), objects=["cart"])
    own = Own()
    own.goal = np.zeros(2)
    env = PointCloudObservation(own, ["top"], objects=["wedge"], relative_to=["goal"])
    with pytest.raises(ValueError, match=r"position 'goal' has shape \(2,\); 3 coordinates are needed"):
        env.reset()
