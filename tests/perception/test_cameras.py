"""Projection and poses: a body of known pose is found where it is."""

import mujoco
import numpy as np
import pytest

from perception.cameras import camera_to_world, intrinsics, turn_camera
from perception.point_cloud import back_project, transform
from perception.rendering import RENDERERS, make_renderer

RADIUS = 0.03


def sphere(position) -> str:
    return f'<body name="ball" pos="{" ".join(map(str, position))}"><geom type="sphere" size="{RADIUS}"/></body>'


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("camera", ["overhead", "oblique"])
@pytest.mark.parametrize("size", [(128, 128), (128, 96), (96, 128)])
def test_points_lie_on_a_sphere_of_known_pose(scene, renderer, camera, size):
    center = np.array([-0.07, 0.09, 0.95])
    model, data = scene(after=sphere(center))
    made = make_renderer(renderer, model, camera, "ball", *size)
    depth, mask = made.render(data)
    assert depth.shape == mask.shape == size[::-1]
    assert depth.dtype == np.float32 and mask.dtype == bool
    points = transform(back_project(depth, mask, made.intrinsics), camera_to_world(model, data, camera))
    made.close()
    np.testing.assert_allclose(np.linalg.norm(points - center, axis=-1), RADIUS, atol=1e-3)
    # The visible cap is centred on the line of sight: nothing is mirrored or swapped.
    sight = camera_to_world(model, data, camera)[:3, 3] - center
    offset = points.mean(axis=0) - center
    assert offset @ sight / np.linalg.norm(offset) / np.linalg.norm(sight) > 0.99


@pytest.mark.parametrize("size", [(128, 128), (128, 96), (96, 128), (64, 64)])
@pytest.mark.parametrize("camera", ["overhead", "oblique"])
def test_puck_centre_does_not_depend_on_the_image_size(scene, place_puck, camera, size):
    model, data = scene()
    for xy in ([0.05, -0.04], [-0.12, 0.1], [0.0, 0.0]):
        place_puck(model, data, [*xy, 0.815])
        made = make_renderer("ray", model, camera, width=size[0], height=size[1])
        points = transform(back_project(*made.render(data), made.intrinsics), camera_to_world(model, data, camera))
        middle = (points.min(axis=0) + points.max(axis=0))[:2] / 2
        np.testing.assert_allclose(middle, xy, atol=5e-3)


@pytest.mark.parametrize("distance", [0.6, 1.4])
@pytest.mark.parametrize("renderer", RENDERERS)
def test_flat_table_straight_down(renderer, distance):
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody><camera name="down" pos="0 0 {distance}" fovy="60"/>
        <body name="table" pos="0 0 -.05"><geom type="box" size="2 2 .05"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    made = make_renderer(renderer, model, "down", "table", 80, 60)
    depth, mask = made.render(data)
    made.close()
    assert mask.all()
    assert abs(np.median(depth) - distance) < 2e-3
    assert np.ptp(depth) < 2e-3  # along the axis, not along the ray


def test_principal_point_and_focal_length(scene):
    model, data = scene()
    camera = intrinsics(model, "overhead", 96, 64)
    assert camera.center == (48.0, 32.0)
    point = np.array([0.1, -0.2, 0.9, 1.0])
    x, y, z = (np.linalg.inv(camera_to_world(model, data, "overhead")) @ point)[:3]
    u, v, w = camera.matrix @ [x, y, z]
    # The camera looks down with world −y to its right and world −x down, fovy 45°.
    focal = 32 / np.tan(np.pi / 8)
    np.testing.assert_allclose(z, 0.6, atol=1e-12)
    np.testing.assert_allclose(u / w, 48 + focal * (0.03 + 0.2) / 0.6, atol=1e-9)
    np.testing.assert_allclose(v / w, 32 + focal * (0.02 - 0.1) / 0.6, atol=1e-9)


def test_unknown_names_list_the_known_ones(scene):
    model, data = scene()
    with pytest.raises(ValueError, match=r"unknown camera 'sideview'.*overhead, oblique"):
        camera_to_world(model, data, "sideview")
    with pytest.raises(ValueError, match=r"unknown body 'cube'.*puck_main"):
        make_renderer("ray", model, "overhead", "cube")
    with pytest.raises(ValueError, match=r"unknown renderer 'vulkan'.*gl, ray"):
        make_renderer("vulkan", model, "overhead")


@pytest.mark.parametrize(
    "attribute", ['projection="orthographic"', 'sensorsize=".01 .01" resolution="8 8" focal=".01 .01"']
)
def test_cameras_that_are_no_simple_pinholes_are_refused(attribute):
    fovy = "" if "sensorsize" in attribute else 'fovy="45"'
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><camera name="c" {attribute} {fovy}/><geom size="1"/></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match="camera 'c'"):
        intrinsics(model, "c", 8, 8)


def test_a_turned_camera_sees_what_it_saw_from_aside(scene):
    model, data = scene()
    before = camera_to_world(model, data, "oblique")
    turn_camera(model, "oblique", 90.0)
    mujoco.mj_forward(model, data)
    quarter = np.array([[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(camera_to_world(model, data, "oblique"), quarter @ before, atol=1e-12)
    with pytest.raises(ValueError, match="unknown camera 'side'"):
        turn_camera(model, "side", 1.0)


def test_a_camera_on_a_body_is_not_turned():
    """Its pose is relative to the body, which may stand or move anywhere."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body name="hand" pos="1 0 1"><camera name="eye" pos="0.1 0 0"/><geom size="1"/></body>
        </worldbody></mujoco>"""
    )
    before = model.cam_pos.copy()
    with pytest.raises(ValueError, match="camera 'eye' is fixed to body 'hand'"):
        turn_camera(model, "eye", 90.0)
    np.testing.assert_array_equal(model.cam_pos, before)
