"""Geometry of the pushing tasks: table, puck, slot, reset grids and cameras, in metres.

World frame: x points away from the robot, y to its left, z up; the origin lies below the table's centre, and the
surface of the table is at z = ``TABLE_HEIGHT``. The paper gives no geometry; this one follows two rules. A puck pushed
fully into the slot is a success at any lateral position. The outside of a side wall is further from the goal than the
radius within which demonstrated states contribute to the potential, so that Φ has no local maximum behind a wall.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

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
GRID_HALF_SIZE = 0.03  # [m]
GRIDS = np.array([[-0.02, -0.22], [-0.02, 0.22], [-0.15, 0.0]])  # centres of the reset grids, xy [m]
PLANE_START_HALF_SIZE = 0.1  # largest |x| and |y| of the puck at the start of the plane task [m]
