"""Geometry of the pushing tasks: table, puck, slot, reset grids and cameras, in metres.

World frame: x points away from the robot, y to its left, z up; the origin lies below the table's centre, and the
surface of the table is at z = ``TABLE_HEIGHT``. The paper gives no geometry; this one follows two rules. A puck pushed
fully into the slot is a success at any lateral position. The outside of a side wall is further from the goal than the
radius within which demonstrated states contribute to the potential, so that Φ has no local maximum behind a wall.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from envs.ranges import Range

TABLE_SIZE = (0.64, 1.0, 0.05)  # [m]
TABLE_HEIGHT = 0.8  # [m]
HOLD_HEIGHT = TABLE_HEIGHT + 0.01  # height of the pusher's tip [m]
RIM = {  # centres and half sizes of the table's rim, which stops a puck that slips from the pusher; world frame [m]
    "rim_far": ((0.31, 0.0, TABLE_HEIGHT + 0.015), (0.01, 0.5, 0.015)),
    "rim_near": ((-0.31, 0.0, TABLE_HEIGHT + 0.015), (0.01, 0.5, 0.015)),
    "rim_left": ((0.0, 0.49, TABLE_HEIGHT + 0.015), (0.3, 0.01, 0.015)),
    "rim_right": ((0.0, -0.49, TABLE_HEIGHT + 0.015), (0.3, 0.01, 0.015)),
}
PUCK_RADIUS = 0.03  # [m]
PUCK_HALF_HEIGHT = 0.015  # [m]
PUCK_FRICTION = (0.3, 5e-3, 1e-4)
PUCK_RADII = {"cylinder": 1.0, "box": 2**0.5}  # radius of the enclosing vertical cylinder per half width, by shape
SMALLEST_PUCK = 0.01  # half width [m]
# Time constant [s] and damping ratio of the puck's contacts. Softer contacts store energy when the pusher presses the
# puck against a wall, and then throw it off the table.
PUCK_STIFFNESS = (0.005, 1.0)
WORKSPACE = np.array([[-0.24, -0.34], [0.24, 0.34]])  # commanded positions of the pusher, xy [m]
MAX_DISPLACEMENT = 0.06  # position error commanded by an action of 1 [m]; the pusher moves about 2 cm per step

CAMERAS: dict[str, dict[str, Any]] = {
    # Both cameras face the robot, so that the arm is behind the puck, and look down at 45° or less, so that the puck is
    # visible below the hand when the pusher is in front of it.
    "overhead": {
        "position": (0.71, 0.0, TABLE_HEIGHT + 0.71),
        "target": (0.0, 0.0, TABLE_HEIGHT),
        "fovy": 42.0,
    },
    "oblique": {
        "position": (0.55, -0.55, TABLE_HEIGHT + 0.60),
        "target": (0.0, 0.0, TABLE_HEIGHT),
        "fovy": 42.0,
    },
}


@dataclass(frozen=True)
class SlotGeometry:
    """U-shaped slot of three walls around the goal, open towards +x; all lengths in [m].

    The clearances ensure that a puck pushed fully into the slot is within 2 cm of the goal.
    """

    goal: tuple[float, float] = (0.0, 0.0)
    half_width: float = 0.045  # from the goal to the inner face of a side wall
    depth: float = 0.04  # from the goal to the inner face of the back wall
    mouth: float = 0.05  # from the goal to the end of the side walls
    thickness: float = 0.02
    height: float = 0.05

    def walls(self) -> dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]]:
        """Return centre and half sizes of each wall by name, world frame [m]."""
        x, y = self.goal
        z = TABLE_HEIGHT + self.height / 2
        back, half, t = (
            self.depth + self.thickness,
            (self.depth + self.thickness + self.mouth) / 2,
            self.thickness / 2,
        )
        side_x = x + (self.mouth - back) / 2
        return {
            "slot_left": ((side_x, y + self.half_width + t, z), (half, t, self.height / 2)),
            "slot_right": ((side_x, y - self.half_width - t, z), (half, t, self.height / 2)),
            "slot_back": ((x - self.depth - t, y, z), (t, self.half_width, self.height / 2)),
        }


SLOT = SlotGeometry()


@dataclass(frozen=True)
class Puck:
    """Shape and friction of the puck; the environments check them (`checked_puck`).

    The height is the same for every puck: ``PUCK_HALF_HEIGHT``.
    """

    shape: Literal["cylinder", "box"] = "cylinder"
    """Cylinder, or box with a square base."""
    half_width: float = PUCK_RADIUS
    """Radius of the cylinder, or half the side of the box's base [m]."""
    friction: float = PUCK_FRICTION[0]
    """Coefficient of sliding friction in all contacts of the puck."""

    @property
    def radius(self) -> float:
        """Radius of the vertical cylinder that encloses the puck at any yaw [m]."""
        return self.half_width * PUCK_RADII[self.shape]


def checked_puck(settings: Puck | Mapping[str, Any]) -> Puck:
    """Return the puck of the given settings: a `Puck`, or a mapping of them as in JSON.

    Raises:
        ValueError: A setting is unknown, the puck does not fit into the slot at any yaw, or its friction is invalid.
    """
    known = [field.name for field in fields(Puck)]
    if not isinstance(settings, Puck):
        if not isinstance(settings, Mapping) or set(settings) - set(known):
            raise ValueError(f"puck is {settings!r}; give a Puck, or a mapping with any of {', '.join(known)}")
        settings = Puck(**settings)
    if settings.shape not in tuple(PUCK_RADII):  # a list is no key
        raise ValueError(f"puck: unknown shape {settings.shape!r}; known shapes: {', '.join(PUCK_RADII)}")
    sizes = Range(SMALLEST_PUCK, SLOT.half_width / PUCK_RADII[settings.shape])
    if not (_is_number(settings.half_width) and settings.half_width in sizes):
        raise ValueError(
            f"puck: half_width is {settings.half_width!r}; for a {settings.shape} that fits into the slot at any yaw "
            f"it must lie in {sizes} m"
        )
    if not (_is_number(settings.friction) and 0 < settings.friction < np.inf):
        raise ValueError(f"puck: friction is {settings.friction!r}; it must be a finite number above 0")
    return settings


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


PUCK = Puck()
GRID_HALF_SIZE = 0.03  # [m]
GRIDS = np.array([[-0.02, -0.22], [-0.02, 0.22], [-0.15, 0.0]])  # centres of the reset grids, xy [m]
PLANE_START_HALF_SIZE = 0.1  # largest |x| and |y| of the puck at the start of the plane task [m]
