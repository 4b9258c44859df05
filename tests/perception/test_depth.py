"""Depth images of any pinhole camera become the points that were seen."""

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from perception.depth import cloud_from_depth

K = np.array([[310.0, 0.0, 70.5], [0.0, 280.0, 22.0], [0.0, 0.0, 1.0]])


def pose(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = Rotation.random(random_state=seed).as_matrix(), rng.normal(size=3)
    return made


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_project_to_their_pixels(dtype):
    """Pixels that are not square, a principal point off the centre, and depth that is missing in places."""
    rng = np.random.default_rng(0)
    depth = rng.uniform(0.3, 2.0, (50, 120)).astype(dtype)
    depth[rng.random(depth.shape) < 0.4] = 0.0
    for value in (np.nan, np.inf, -np.inf, -0.5):
        depth[rng.random(depth.shape) < 0.05] = value
    seen = np.isfinite(depth) & (depth > 0)
    points = cloud_from_depth(depth, K, pose())
    camera = (points - pose()[:3, 3]) @ pose()[:3, :3]
    image = camera @ K.T
    np.testing.assert_allclose(image[:, :2] / image[:, 2:], np.argwhere(seen)[:, ::-1] + 0.5, atol=1e-6)
    np.testing.assert_allclose(camera[:, 2], depth[seen], atol=1e-9)
    assert cloud_from_depth(np.full((4, 5), np.nan), K, pose()).shape == (0, 3)


def test_a_box_seen_by_a_camera_with_its_own_calibration():
    """MuJoCo renders it: the points lie on the faces of the box."""
    width, height = 160, 120
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody>
      <camera name="real" pos=".3 -.5 .9" xyaxes="1 .5 0 -.2 .5 .5" resolution="{width} {height}" sensorsize=".004 .003"
              focalpixel="150 190" principalpixel="12 -9"/>
      <body name="box" pos=".1 0 .1" euler="10 20 30"><geom type="box" size=".1 .07 .05"/></body>
    </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = mujoco.Renderer(model, height, width)
    renderer.update_scene(data, "real")
    renderer.enable_depth_rendering()
    depth = renderer.render().copy()
    renderer.close()
    extrinsics = np.eye(4)
    extrinsics[:3, :3] = data.camera("real").xmat.reshape(3, 3) * [1.0, -1.0, -1.0]
    extrinsics[:3, 3] = data.camera("real").xpos
    # MuJoCo's principal point is the offset of the image's centre from it.
    calibration = np.array([[150.0, 0.0, width / 2 - 12], [0.0, 190.0, height / 2 + 9], [0.0, 0.0, 1.0]])
    points = cloud_from_depth(np.where(depth < 2, depth, 0.0), calibration, extrinsics)
    body = data.body("box")
    beyond = np.abs((points - body.xpos) @ body.xmat.reshape(3, 3)) - [0.1, 0.07, 0.05]
    assert len(points) > 300 and np.abs(beyond.max(axis=1)).max() < 1e-3


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depth": np.ones((4, 5), np.uint16)}, "type uint16; give an image of floating point numbers in metres"),
        ({"depth": np.ones((4, 5, 1))}, r"shape \(4, 5, 1\)"),
        ({"intrinsics": np.eye(4)}, "intrinsics is"),
        ({"intrinsics": K.T}, "intrinsics is"),
        ({"intrinsics": -K}, "intrinsics is"),
        ({"camera_to_world": np.eye(3)}, "camera_to_world is"),
        ({"camera_to_world": 2 * np.eye(4)}, "camera_to_world is"),
        ({"camera_to_world": np.diag([1.0, -1.0, 1.0, 1.0])}, "camera_to_world is"),
        ({"camera_to_world": np.full((4, 4), np.nan)}, "camera_to_world is"),
    ],
)
def test_what_is_no_calibration_is_refused(given, message):
    with pytest.raises(ValueError, match=message) as error:
        cloud_from_depth(**({"depth": np.ones((4, 5)), "intrinsics": K, "camera_to_world": np.eye(4)} | given))
    assert "\n" not in str(error.value)
