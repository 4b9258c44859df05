"""Both renderers see the same puck, only the puck, and only their own scene."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from perception.rendering import RENDERERS, make_renderer
from perception.rendering.geoms import drawn_geoms
from perception.rendering.occlusion import Occluders

ROOT = Path(__file__).parents[2]
CLUTTER = """
<body name="bar" mocap="true" pos="0 0 1"><geom type="capsule" size=".015 .12"/></body>
<body name="wedge" mocap="true" pos="0 0 1.1"><geom type="mesh" mesh="wedge"/></body>
<body name="egg" mocap="true" pos="0 0 1.1"><geom type="ellipsoid" size=".02 .04 .03"/></body>
<body name="block" mocap="true" pos="0 0 1.1">
  <geom type="box" size=".01 .06 .02"/><geom type="cylinder" size=".01 .1" pos=".1 0 0" rgba="1 1 1 .5"/>
</body>
"""


def scatter(model, data, rng) -> None:
    """Put the clutter at random poses in the air between cameras and table."""
    data.mocap_pos[:] = rng.uniform([-0.2, -0.25, 0.83], [0.25, 0.15, 1.1], (model.nmocap, 3))
    data.mocap_quat[:] = rng.normal(size=(model.nmocap, 4))
    data.mocap_quat[:] /= np.linalg.norm(data.mocap_quat, axis=-1, keepdims=True)


def puck_position(rng) -> np.ndarray:
    return rng.uniform([-0.2, -0.2, 0.815], [0.2, 0.2, 0.9])


@pytest.mark.parametrize("camera", ["overhead", "oblique"])
def test_ray_agrees_with_gl(scene, place_puck, camera):
    rng = np.random.default_rng(0)
    model, data = scene(after=CLUTTER)
    ray, gl = (make_renderer(name, model, camera, width=96, height=80) for name in ("ray", "gl"))
    seen = common = differing = apart = 0
    for _ in range(150):
        scatter(model, data, rng)
        place_puck(model, data, puck_position(rng), rng.normal(size=4))
        (ray_depth, ray_mask), (gl_depth, gl_mask) = ray.render(data), gl.render(data)
        seen += gl_mask.sum()
        common += (ray_mask & gl_mask).sum()
        differing += (ray_mask ^ gl_mask).sum()
        # Where a ray grazes the rim, the side of OpenGL's polygon can be a millimetre off along the ray.
        apart += (np.abs(ray_depth - gl_depth)[ray_mask & gl_mask] > 1e-3).sum()
    gl.close()
    assert seen > 4_000
    assert differing <= 0.002 * seen
    assert apart <= 0.001 * common


def test_occlusion_agrees_with_one_ray_at_a_time(scene, place_puck):
    """The pruned tests hide a pixel exactly where `mj_ray`, over all geoms, meets something before the puck."""
    rng = np.random.default_rng(1)
    model, data = scene(after=CLUTTER)
    drawn = drawn_geoms(model)
    model.geom_group[:] = np.where(drawn, 1, 5)
    groups = np.array([0, 1, 0, 0, 0, 0], dtype=np.uint8)
    body = model.body("puck_main").id
    occluders = Occluders(model, np.flatnonzero(drawn & (model.geom_bodyid != body)))
    origin = np.array([0.3, -0.2, 1.4])
    blocked = 0
    for _ in range(40):
        scatter(model, data, rng)
        place_puck(model, data, puck_position(rng), rng.normal(size=4))
        targets = data.body(body).xpos + rng.uniform(-0.02, 0.02, (50, 3))
        directions = targets - origin
        depths = np.ones(50)
        hidden = occluders.hide(data, origin, directions, depths, 0.01)
        geom = np.zeros(1, dtype=np.int32)
        for ray, found in zip(directions, hidden, strict=True):
            distance = mujoco.mj_ray(model, data, origin, ray, groups, 1, body, geom)
            if not 0.999 < distance < 1.001:
                assert found == (0 <= distance < 1)
        blocked += hidden.sum()
    assert 100 < blocked < 1900


@pytest.mark.parametrize("renderer", RENDERERS)
def test_only_the_named_body_is_seen(scene, renderer):
    """Distractors before the puck shift every id; a red cylinder beside it is no puck."""
    box = '<body pos="{} .2 .83"><geom type="box" size=".03 .03 .03" rgba=".9 .1 .1 1"/></body>'
    twin = '<body pos=".05 .06 .815"><geom type="cylinder" size=".03 .015" rgba=".9 .1 .1 1" group="1"/></body>'
    plain = scene()
    crowded = scene(before=box.format(0.2) + box.format(-0.2), after=twin)
    images = []
    for model, data in (plain, crowded):
        made = make_renderer(renderer, model, "overhead")
        depth, mask = made.render(data)
        made.close()
        images.append((depth[mask], mask))
    assert images[0][1].sum() > 20
    np.testing.assert_array_equal(images[0][1], images[1][1])
    np.testing.assert_allclose(images[0][0], images[1][0], atol=1e-3)


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("far", ['<geom size="1" pos="20 0 0"/>', '<geom size="1" pos="0 0 -20"/>'])
def test_a_geom_far_away_moves_nothing(scene, renderer, far):
    """The near and far planes scale with the model's extent; metres must not."""
    depths = []
    for after in ("", far):
        model, data = scene(after=after)
        made = make_renderer(renderer, model, "oblique")
        depth, mask = made.render(data)
        made.close()
        depths.append((depth[mask], mask))
    np.testing.assert_array_equal(depths[0][1], depths[1][1])
    np.testing.assert_allclose(depths[0][0], depths[1][0], atol=1e-3)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_hidden_and_outside_the_image(scene, place_puck, renderer):
    lid = '<body name="lid" pos=".05 -.04 .9"><geom type="box" size=".1 .1 .01"/></body>'
    model, data = scene(after=lid)
    made = make_renderer(renderer, model, "overhead")
    assert not made.render(data)[1].any()
    for elsewhere in ([5.0, 0.0, 0.8], [0.02, 0.03, 2.5], [0.02, 0.03, 0.3]):  # beside, behind the camera, below
        place_puck(model, data, elsewhere)
        depth, mask = made.render(data)
        assert not mask.any() and np.isfinite(depth).all()
    place_puck(model, data, [0.2, 0.2, 0.815])
    assert made.render(data)[1].any()
    made.close()


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_puck_cut_by_the_border(scene, place_puck, renderer):
    model, data = scene()
    made = make_renderer(renderer, model, "overhead")
    place_puck(model, data, [0.02, 0.03 - 0.69 * np.tan(np.pi / 8), 0.815])
    _, mask = made.render(data)
    made.close()
    assert mask[:, -1].any() and not mask[:, :50].any()


@pytest.mark.parametrize("renderer", RENDERERS)
def test_alternating_renderers_do_not_mix(scene, place_puck, renderer):
    """A training and an evaluation environment in one process: each image is that of a lone one."""
    rng = np.random.default_rng(2)
    worlds = [scene(), scene(after=CLUTTER)]
    positions = [[puck_position(rng) for _ in range(5)] for _ in worlds]

    def images(made, world, position):
        place_puck(*world, position)
        return made.render(world[1])

    alone = []
    for world, path in zip(worlds, positions, strict=True):
        made = make_renderer(renderer, world[0], "overhead")
        alone.append([images(made, world, position) for position in path])
        made.close()
    pair = [make_renderer(renderer, model, "overhead") for model, _ in worlds]
    for step in range(5):
        for which, made in enumerate(pair):
            depth, mask = images(made, worlds[which], positions[which][step])
            np.testing.assert_array_equal(depth, alone[which][step][0])
            np.testing.assert_array_equal(mask, alone[which][step][1])
        if step == 2:  # closing a third does not disturb them
            third = make_renderer(renderer, worlds[0][0], "oblique", width=32, height=100)
            third.render(worlds[0][1])
            third.close()
            third.close()
    for made in pair:
        made.close()


def test_cameras_of_one_model_differ_in_size(scene):
    model, data = scene()
    shapes = [(64, 64), (128, 96), (40, 120)]
    made = [make_renderer("gl", model, "overhead", width=w, height=h) for w, h in shapes]
    first = [renderer.render(data) for renderer in made]
    for renderer, (depth, mask) in zip(made, first, strict=True):
        again = renderer.render(data)
        np.testing.assert_array_equal(again[0], depth)
        np.testing.assert_array_equal(again[1], mask)
        renderer.close()


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize(
    "geom",
    [
        'type="box" size=".06 .06 .06"',
        'type="sphere" size=".06"',
        'type="capsule" size=".06 .06"',
        'type="cylinder" size=".06 .06"',
        'type="ellipsoid" size=".06 .06 .09"',
        'type="mesh" mesh="wedge"',
    ],
)
def test_a_camera_looks_out_of_the_geom_around_it(scene, renderer, geom):
    """As one that is mounted inside a link; a second geom further on still hides the puck."""
    hand = f'<body pos=".05 -.04 1.2"><camera name="hand" fovy="30"/><geom {geom}/></body>'
    lid = '<body pos=".05 -.04 .9"><geom size=".05"/></body>'
    for after, seen in ((hand, True), (hand + lid, False)):
        model, data = scene(after=after)
        made = make_renderer(renderer, model, "hand")
        assert made.render(data)[1].any() == seen
        made.close()


def test_collision_geoms_with_a_visual_twin_are_not_drawn(scene):
    model, _ = scene(after='<geom name="post" type="box" size=".1 .1 .1" pos="1 1 1"/>')
    drawn = {model.geom(i).name for i in np.flatnonzero(drawn_geoms(model))}
    assert drawn == {"floor", "table_visual", "puck_g0_vis", "post"}


def test_invisible_geoms_hide_nothing(scene):
    lid = '<body pos=".05 -.04 .9"><geom type="box" size=".1 .1 .01" rgba="1 1 1 0"/></body>'
    model, data = scene(after=lid)
    for name in RENDERERS:
        made = make_renderer(name, model, "overhead")
        assert made.render(data)[1].any()
        made.close()


SCRIPT = """
import sys; sys.path[:0] = [{root!r}, {tests!r}]
import mujoco
from conftest import PUCK, SCENE
from perception.rendering import make_renderer
model = mujoco.MjModel.from_xml_string(SCENE.format(before="", after="", puck=PUCK))
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
kept = [make_renderer("gl", model, camera) for camera in ("overhead", "oblique")]
try:
    print(sum(int(made.render(data)[1].sum()) for made in kept))
except RuntimeError as error:
    sys.exit(str(error))
{then}
"""


def run(then: str = "", **environment: str) -> subprocess.CompletedProcess:
    script = SCRIPT.format(root=str(ROOT), tests=str(Path(__file__).parent), then=then)
    env = {"PATH": "/usr/bin:/bin", "MUJOCO_GL": "egl", "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=300)


@pytest.mark.parametrize("then", ["", "kept[0].close(); kept[0].close(); del kept[0]"])
def test_nothing_is_said_at_exit(then):
    done = run(then)
    assert done.returncode == 0 and int(done.stdout) > 40
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        (
            {"MUJOCO_EGL_DEVICE_ID": "99"},
            ["an EGL device (0", "MUJOCO_EGL_DEVICE_ID is '99'", "set MUJOCO_GL to osmesa"],
        ),
        ({"MUJOCO_GL": "off"}, ["MUJOCO_GL=off", "egl"]),
        ({"MUJOCO_GL": "glfw", "DISPLAY": ""}, ["libglfw", "MUJOCO_GL=glfw"]),
    ],
)
def test_missing_opengl_is_one_line(environment, names):
    done = run(**environment)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    for name in names:
        assert name in done.stderr


def render_in_worker(queue, xml: str) -> None:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    made = make_renderer("gl", model, "overhead", "ball")
    queue.put({int(made.render(data)[1].sum()) for _ in range(50)})
    made.close()


def test_workers_beside_a_parent_that_renders():
    """Two spawned workers render and never hang."""
    xml = """<mujoco><worldbody><camera name="overhead" pos="0 0 1"/>
    <body name="ball"><geom size=".1"/></body></worldbody></mujoco>"""
    context = multiprocessing.get_context("spawn")
    here, queue = context.SimpleQueue(), context.Queue()
    render_in_worker(here, xml)
    expected = here.get()
    workers = [context.Process(target=render_in_worker, args=(queue, xml), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    for _ in workers:
        assert queue.get(timeout=300) == expected
    for worker in workers:
        worker.join(timeout=300)
        assert worker.exitcode == 0
