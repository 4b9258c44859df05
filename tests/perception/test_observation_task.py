"""The clouds of the real task: whatever else is in the room, however the images are shaped, whoever renders beside."""

import xml.etree.ElementTree as ET

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import envs  # noqa: F401 (registers the tasks)
from envs.push.geometry import CAMERAS, GRIDS
from perception.cameras import camera_to_world
from perception.observation import PointCloudObservation
from perception.point_cloud import back_project, transform
from perception.rendering import RENDERERS, make_renderer


def make(grids=1, **perception):
    return gymnasium.make("PushSlot-v0", obs="pointcloud", grids=grids, perception=perception)


@pytest.fixture(scope="module")
def base():
    env = gymnasium.make("PushSlot-v0", grids=3).unwrapped
    yield env
    env.close()


def edited(base, change):
    """The task's model with changed XML, the arm as in `base` and the puck too."""
    root = ET.fromstring(base.robosuite.model.get_xml())
    change(root.find("worldbody"))
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    data = mujoco.MjData(model)
    for joint in map(base.model.joint, range(base.model.njnt)):
        to, size = model.joint(joint.name).qposadr[0], len(base.data.joint(joint.id).qpos)
        data.qpos[to : to + size] = base.data.joint(joint.id).qpos
    mujoco.mj_forward(model, data)
    return model, data


def puck_points(model, data, renderer, camera):
    made = make_renderer(renderer, model, camera, width=128, height=128)
    points = transform(back_project(*made.render(data), made.intrinsics), camera_to_world(model, data, camera))
    made.close()
    return points


def remove_room(world):
    """Walls, floor, lights: everything that is neither robot, table, slot nor puck."""
    room = [e for e in world if e.tag in ("geom", "light") and not e.get("name", "").startswith(("slot", "rim"))]
    assert len(room) > 5
    for element in room:
        world.remove(element)


def add_far_away(world):
    ET.SubElement(world, "geom", type="sphere", size="1", pos="20 0 1")


def add_distractors(world):
    """Two bodies with joints before the puck's, a box and a cylinder of its colour."""
    for i, (kind, size) in enumerate([("box", ".02 .02 .02"), ("cylinder", ".03 .015")]):
        body = ET.Element("body", name=f"distractor{i}", pos=f"-0.25 {0.1 + 0.25 * i} 0.83")
        ET.SubElement(body, "freejoint")
        for group in "01":
            ET.SubElement(body, "geom", type=kind, size=size, rgba=".85 .15 .1 1", group=group)
        world.insert(0, body)


@pytest.mark.parametrize("change", [remove_room, add_far_away, add_distractors])
@pytest.mark.parametrize("renderer", RENDERERS)
def test_what_else_is_there_moves_no_point(base, renderer, change):
    for grid in (0, 1):
        base.reset(seed=grid, options={"grid": grid})
        plain, other = edited(base, lambda world: None), edited(base, change)
        for camera in CAMERAS:
            before, after = (puck_points(*scene, renderer, camera) for scene in (plain, other))
            assert len(before) == len(after) > 30
            np.testing.assert_allclose(after, before, atol=1e-3)


def test_a_puck_coloured_box_beside_the_puck_is_no_puck(base):
    """Touching it, in the image too."""
    base.reset(seed=0, options={"puck": [0.1, 0.2], "end_effector": [0.0, 0.2]})

    def touch(world):
        body = ET.SubElement(world, "body", pos="0.1 0.255 0.82")
        ET.SubElement(body, "geom", type="box", size=".025 .025 .02", rgba=".85 .15 .1 1", group="1")

    for renderer in RENDERERS:
        points = puck_points(*edited(base, touch), renderer, "overhead")
        assert len(points) > 50 and np.linalg.norm(points[:, :2] - [0.1, 0.2], axis=1).max() < 0.031


@pytest.mark.parametrize("cameras", [("overhead",), ("overhead", "oblique")])
@pytest.mark.parametrize("renderer", RENDERERS)
def test_images_of_any_shape_have_the_same_centre(base, renderer, cameras):
    """From starts on all grids; the few sampled points lie on the outline, where a pixel moves their mean more."""
    sizes = [(128, 128), (128, 96), (96, 128)]
    wrapped = [PointCloudObservation(base, cameras, renderer=renderer, width=w, height=h) for w, h in sizes]
    apart = []
    for seed in range(24):
        _, info = wrapped[0].reset(seed=seed)
        centres = []
        for each in wrapped:
            each._observe(info)
            centres.append([each._object_points("puck_main").mean(axis=0)[:2], each.points_world.mean(axis=0)[:2]])
        if len(wrapped[1]._object_points("puck_main")) >= 20:
            apart.append(np.array(centres) - centres[0])
    assert len(apart) > 20
    cloud, sampled = np.moveaxis(np.abs(apart), 2, 0)
    assert cloud.max() < 5e-3
    assert np.median(sampled[:, 1:].max(axis=-1)) < 5e-3 and sampled.max() < 1e-2
    for each in wrapped:
        each.close()


@pytest.mark.parametrize("renderer", RENDERERS)
def test_the_first_cloud_is_at_the_new_start(renderer):
    env = make(grids=2, renderer=renderer)
    for seed, (first, second) in enumerate([(0, 1), (1, 0)]):
        env.reset(seed=seed, options={"grid": first})
        way = env.unwrapped.puck_position - env.unwrapped.end_effector_position
        for _ in range(6):
            env.step(way[:2] / np.linalg.norm(way[:2]))
        cloud, info = env.reset(options={"grid": second})
        assert info["puck_visible"]
        distance = np.linalg.norm(cloud[:, 2:] + env.unwrapped.goal_position - GRIDS[second], axis=1)
        assert distance.max() < 0.03 * np.sqrt(2) + 0.031
        np.testing.assert_array_equal(info["achieved_goal"][2:], 0.0)
        np.testing.assert_array_equal(env.unwrapped.data.qvel, 0.0)
    env.close()


def test_training_and_evaluation_see_what_a_lone_environment_sees():
    """Alternately, with different numbers of grids and by both renderers, colour images between them."""
    actions = np.random.default_rng(0).uniform(-1, 1, (8, 2))

    def clouds(env, seed):
        yield env.reset(seed=seed)[0]
        for action in actions:
            yield env.step(action)[0]

    for renderer in RENDERERS:
        alone = []
        for seed in (0, 1):
            env = make(grids=seed + 1, renderer=renderer)
            alone.append(list(clouds(env, seed)))
            env.close()
        pair = [make(grids=seed + 1, renderer=renderer) for seed in (0, 1)]
        filmed = gymnasium.make("PushSlot-v0", render_mode="rgb_array", disable_env_checker=True)
        filmed.reset(seed=0)
        image = filmed.render()
        for seen in zip(*(clouds(env, seed) for seed, env in enumerate(pair)), *alone, strict=True):
            np.testing.assert_array_equal(seen[:2], seen[2:])
            np.testing.assert_array_equal(filmed.render(), image)
        for env in (*pair, filmed):
            env.close()


def test_a_description_holds_what_the_wrapper_was_given():
    """Tuples too, as JSON gives them back."""
    workspace = ((-0.5, -0.5, 0.7), (0.5, 0.5, 1.0))
    env = PointCloudObservation(gymnasium.make("PushSlot-v0"), ("oblique",), num_points=5, workspace=workspace)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec == env.spec and isinstance(again, PointCloudObservation)
    np.testing.assert_array_equal(again.reset(seed=1)[0], env.reset(seed=1)[0])
    for each in (env, again):
        each.close()
