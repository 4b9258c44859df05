"""A puck moved over the table by hand: it follows the mouse at the speed of an arm, and walls stop it."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from envs.push.geometry import PUCK_RADIUS, RIM, SLOT, TABLE_SIZE, WORKSPACE
from envs.push.success import STEP

SPEED = 0.2  # of the hand; the pusher reaches 0.4 m/s [m/s]
SUBSTEP = 0.001  # longest motion between two looks at the walls [m]
ROD_RADIUS = 0.01  # of the pusher [m]
BEHIND = PUCK_RADIUS + ROD_RADIUS + 0.005  # distance of the pusher's tip behind the puck [m]

Box = tuple[Sequence[float], Sequence[float]]  # centre and half sizes, world frame [m]
OBSTACLES: tuple[Box, ...] = (*SLOT.walls().values(), *RIM.values())


def follow(
    position: Float[np.ndarray, "2"],
    target: Float[np.ndarray, "2"],
    radius: float = PUCK_RADIUS,
    obstacles: Iterable[Box] = OBSTACLES,
    reach: float = SPEED * STEP,
) -> Float[np.ndarray, "2"]:
    """Move a disc towards a target; it slides along boxes in its way.

    Args:
        position: Centre of the disc, outside the boxes, xy [m].
        target: Where it is drawn to, xy [m].
        radius: Radius of the disc [m].
        obstacles: Boxes by centre and half sizes, of which x and y count [m].
        reach: Longest way [m].

    Returns:
        New centre, shape (2,) [m]: at most `reach` away, and not inside a box.
    """
    boxes = [(np.array(center[:2]), np.array(size[:2])) for center, size in obstacles]
    left = min(reach, float(np.linalg.norm(target - position)))
    while left > 0:
        gap = target - position
        distance = float(np.linalg.norm(gap))
        if distance < 1e-9:
            break
        step = min(SUBSTEP, left, distance)
        moved = pushed_out(position + step / distance * gap, radius, boxes)
        if np.linalg.norm(moved - position) < 1e-3 * step:  # held by a wall
            break
        position, left = moved, left - step
    return position


def pushed_out(
    position: Float[np.ndarray, "2"],
    radius: float,
    boxes: Iterable[tuple[Float[np.ndarray, "2"], Float[np.ndarray, "2"]]],
) -> Float[np.ndarray, "2"]:
    """Return the centre of a disc, moved out of every box that it overlaps along the shortest way."""
    for _ in range(3):  # out of one box may be into another, in a corner
        for center, size in boxes:
            nearest = np.clip(position, center - size, center + size)
            away = position - nearest
            distance = float(np.linalg.norm(away))
            if 0 < distance < radius:
                position = nearest + radius / distance * away
    return position


def tip_behind(trail: Sequence[Float[np.ndarray, "2"]]) -> Float[np.ndarray, "2"]:
    """Return where the tip of the pusher stands behind a puck that has come along a trail.

    It is on the trail, where there was room for the puck, and therefore free of walls; before the trail is long enough,
    it is on the line from the first motion backwards; for a puck that has not moved, on its +x side.

    Args:
        trail: Centres of the puck, the last is the present one, shape (2,) each [m].

    Returns:
        Position of the tip, within the arm's workspace, shape (2,) [m].
    """
    puck = trail[-1]
    for place in reversed(trail):
        if np.linalg.norm(place - puck) >= BEHIND:
            return np.clip(place, *WORKSPACE)
    moved = next((place for place in trail if np.linalg.norm(place - trail[0]) > 1e-3), trail[0] - np.array([1.0, 0.0]))
    heading = (moved - trail[0]) / np.linalg.norm(moved - trail[0])
    return np.clip(puck - BEHIND * heading, *WORKSPACE)


def on_table(point: Float[np.ndarray, "2"]) -> Float[np.ndarray, "2"]:
    """Return the nearest position of the puck on the table, shape (2,) [m]."""
    half = np.array(TABLE_SIZE[:2]) / 2 - PUCK_RADIUS
    return point.clip(-half, half)
