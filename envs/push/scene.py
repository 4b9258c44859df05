"""MuJoCo model of the pushing tasks: table with rim and slot, puck, pusher, goal and cameras."""

import xml.etree.ElementTree as ET
from importlib.resources import files

import envs.simulator  # noqa: F401 (imported first: MuJoCo and robosuite then load without OpenGL)

# isort: split
import mujoco
import numpy as np
from robosuite.models.arenas import TableArena
from robosuite.models.grippers import register_gripper
from robosuite.models.grippers.gripper_model import GripperModel
from robosuite.models.objects import BoxObject, CylinderObject
from robosuite.models.objects.generated_objects import PrimitiveObject

from envs.push.geometry import (
    CAMERAS,
    PUCK_FRICTION,
    PUCK_HALF_HEIGHT,
    PUCK_STIFFNESS,
    RIM,
    TABLE_HEIGHT,
    TABLE_SIZE,
    Puck,
    SlotGeometry,
)

GOAL_SITE = "goal"


@register_gripper
class Pusher(GripperModel):
    """Rod of radius 1 cm and length 14 cm on the flange, without actuation."""

    def __init__(self, idn: int = 0) -> None:
        super().__init__(str(files("assets") / "mjcf" / "pusher.xml"), idn=idn)

    def format_action(self, action: np.ndarray) -> np.ndarray:
        """Return the (empty) action."""
        return action

    @property
    def init_qpos(self) -> None:
        """Initial joint positions: None, since there are no joints."""
        return None

    @property
    def _important_geoms(self) -> dict[str, list[str]]:
        return {k: [] for k in ("left_finger", "right_finger", "left_fingerpad", "right_fingerpad")}


def make_arena(slot: SlotGeometry | None) -> TableArena:
    """Create the table with its rim, the slot if given, the cameras and the site of the goal.

    The position of the site is that of the goal [m]; its user data holds the velocity of the goal [m/s].
    """
    arena = TableArena(TABLE_SIZE, table_friction=PUCK_FRICTION, table_offset=(0, 0, TABLE_HEIGHT), has_legs=False)
    arena.set_origin([0, 0, 0])
    boxes = RIM | (slot.walls() if slot is not None else {})
    for name, (position, size) in boxes.items():
        arena.worldbody.append(_box(name, position, size))
    for name, view in CAMERAS.items():
        eye, quaternion = look_at(view["position"], view["target"])
        arena.set_camera(name, eye, quaternion, {"fovy": str(view["fovy"])})
    arena.worldbody.append(
        ET.Element(
            "site",
            {
                "name": GOAL_SITE,
                "type": "cylinder",
                "size": "0.02 0.001",
                "pos": f"0 0 {TABLE_HEIGHT + 0.001}",
                "user": "0 0",
                "rgba": "0.1 0.7 0.2 1",
            },
        )
    )
    return arena


def make_puck(puck: Puck) -> PrimitiveObject:
    """Create the puck, with a free joint."""
    create, sides = {"cylinder": (CylinderObject, 1), "box": (BoxObject, 2)}[puck.shape]
    made = create(
        "puck",
        size=[*[puck.half_width] * sides, PUCK_HALF_HEIGHT],
        density=500,
        friction=(puck.friction, *PUCK_FRICTION[1:]),
        solref=PUCK_STIFFNESS,
        rgba=[0.85, 0.15, 0.1, 1],
    )
    for geom in made.get_obj().iter("geom"):
        geom.set("priority", "1")  # contacts always use the puck's parameters
        geom.set("margin", "0")  # with robosuite's default the puck floats 1 mm above the table
    return made


def look_at(position: tuple[float, ...], target: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Compute the pose of an upright MuJoCo camera (looks along −z, y up) that is aimed at `target`.

    Args:
        position: Camera centre, world frame, shape (3,) [m].
        target: Point in the middle of the image, world frame, shape (3,) [m].

    Returns:
        Position, shape (3,) [m], and quaternion (w, x, y, z), shape (4,), world frame.
    """
    eye, aim = np.asarray(position, float), np.asarray(target, float)
    z = (eye - aim) / np.linalg.norm(eye - aim)
    x = np.cross([0.0, 0.0, 1.0], z)
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z], axis=1)
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, rotation.flatten())
    return eye, quaternion


def _box(name: str, position: tuple[float, ...], size: tuple[float, ...]) -> ET.Element:
    return ET.Element(
        "geom",
        {
            "name": name,
            "type": "box",
            "group": "1",
            "pos": " ".join(map(str, position)),
            "size": " ".join(map(str, size)),
            "friction": "0.1 0.005 0.0001",
            "rgba": "0.45 0.5 0.6 1",
        },
    )
