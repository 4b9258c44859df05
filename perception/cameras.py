"""Intrinsics and poses of the pinhole cameras of a MuJoCo model.

The camera frame is that of OpenCV: x to the right of the image, y down, z forward along the optical axis. In MuJoCo's
camera frame, y points up and the camera looks along −z. Pixel (column u, row v) covers [u, u+1) × [v, v+1), with row 0
at the top; its centre is (u + 0.5, v + 0.5).
"""

from dataclasses import dataclass

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import mujoco
import numpy as np
from jaxtyping import Float

MUJOCO_TO_OPENCV = np.array([1.0, -1.0, -1.0])  # signs of the axes (columns of the rotation matrix)


@dataclass(frozen=True)
class Intrinsics:
    """Pinhole projection u = f·x/z + c_x, v = f·y/z + c_y with square pixels.

    Attributes:
        width: Image width [pixels].
        height: Image height [pixels].
        focal: Focal length f [pixels].
    """

    width: int
    height: int
    focal: float

    @property
    def center(self) -> tuple[float, float]:
        """Principal point (c_x, c_y), the middle of the image [pixels]."""
        return self.width / 2, self.height / 2

    @property
    def matrix(self) -> Float[np.ndarray, "3 3"]:
        """Camera matrix K, shape (3, 3) [pixels]."""
        cx, cy = self.center
        return np.array([[self.focal, 0.0, cx], [0.0, self.focal, cy], [0.0, 0.0, 1.0]])


def find_id(model: mujoco.MjModel, kind: mujoco.mjtObj, name: str) -> int:
    """Return the id of an object (camera or body) of the model by its name.

    Raises:
        ValueError: No object of this kind has the name; the message lists the existing names.
    """
    found = mujoco.mj_name2id(model, kind, name)
    if found < 0:
        noun = {mujoco.mjtObj.mjOBJ_CAMERA: "camera", mujoco.mjtObj.mjOBJ_BODY: "body"}[kind]
        count = {"camera": model.ncam, "body": model.nbody}[noun]
        names = [mujoco.mj_id2name(model, kind, i) for i in range(count)]
        raise ValueError(f"unknown {noun} {name!r}; the model has {', '.join(n for n in names if n) or 'none'}")
    return found


def intrinsics(model: mujoco.MjModel, camera: str, width: int, height: int) -> Intrinsics:
    """Compute the pinhole projection from the camera's vertical field of view.

    f = (H / 2) / tan(fovy / 2), the same for both axes.

    Args:
        model: MuJoCo model.
        camera: Name of the camera.
        width: Image width [pixels].
        height: Image height [pixels].

    Raises:
        ValueError: Unknown camera, a camera that is not a pinhole camera defined by ``fovy``, or invalid image size.
    """
    if not all(isinstance(size, int | np.integer) and size > 0 for size in (width, height)):
        raise ValueError(f"images of {width!r} × {height!r} pixels; give a whole number of at least 1 for each")
    index = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
    if model.cam_sensorsize[index].any():
        raise ValueError(f"camera {camera!r} is given by sensorsize; give it by fovy instead")
    # Older versions of MuJoCo name the array cam_orthographic; 0 means perspective in both.
    projection = model.cam_projection if hasattr(model, "cam_projection") else model.cam_orthographic
    if projection[index]:
        raise ValueError(f"camera {camera!r} is orthographic; make it a perspective camera")
    focal = height / 2 / np.tan(np.deg2rad(model.cam_fovy[index]) / 2)
    return Intrinsics(width, height, float(focal))


def camera_to_world(model: mujoco.MjModel, data: mujoco.MjData, camera: str) -> Float[np.ndarray, "4 4"]:
    """Return the pose T of the camera frame (OpenCV axes) in the world frame: p_world = T p_camera.

    Open3D's extrinsic matrix is the inverse of T.

    Raises:
        ValueError: Unknown camera; the message lists the known ones.
    """
    index = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
    pose = np.eye(4)
    pose[:3, :3] = data.cam_xmat[index].reshape(3, 3) * MUJOCO_TO_OPENCV
    pose[:3, 3] = data.cam_xpos[index]
    return pose


def turn_camera(model: mujoco.MjModel, camera: str, angle: float) -> None:
    """Turn a camera of the world body around the world's vertical axis, so that it sees the same place from aside.

    Clouds stay in the world, because they are computed with the new pose.

    Args:
        model: MuJoCo model, changed in place.
        camera: Name of the camera.
        angle: Angle, counterclockwise as seen from above [degrees].

    Raises:
        ValueError: Unknown camera, the message lists the known ones; or a camera of another body, whose pose is
            relative to it.
    """
    index = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
    if model.cam_bodyid[index] != 0:
        body = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, model.cam_bodyid[index])
        raise ValueError(f"camera {camera!r} is fixed to body {body!r}; turn one of the world body")
    half = np.deg2rad(angle) / 2
    turn, position, orientation = np.array([np.cos(half), 0.0, 0.0, np.sin(half)]), np.empty(3), np.empty(4)
    mujoco.mju_rotVecQuat(position, model.cam_pos[index], turn)
    mujoco.mju_mulQuat(orientation, turn, model.cam_quat[index])
    model.cam_pos[index], model.cam_quat[index] = position, orientation
