"""Hand-coded, deliberately sub-optimal expert for the pushing tasks.

It pushes the puck through fixed anchor points around the slot, slowly and with a detour, so that its demonstrations are
feasible but about four times slower than necessary (the paper's demonstrations take 125 to 146 steps).
"""

import heapq

import numpy as np

from envs.push.geometry import GRIDS, PUCK_RADIUS, SLOT, WORKSPACE, SlotGeometry

ROD_RADIUS = 0.01  # [m]
CONTACT = PUCK_RADIUS + ROD_RADIUS  # distance of the tip from the centre of the default puck when they touch [m]
DETOUR = 0.012  # clearance of the tip from the puck on the way around it [m]
WALL_CLEARANCE = ROD_RADIUS + 0.008  # [m]
STANDOFF = 0.01  # clearance behind the puck at which a push starts [m]
ALIGNED, LOST = np.deg2rad(12.0), np.deg2rad(50.0)  # angles at which a push starts and is abandoned [rad]
REACHED = 0.02  # distance at which an anchor counts as reached [m]
SETTLED = 0.012  # distance at which the goal counts as reached; the puck has to stop there [m]
TRAVEL = 0.7  # length of the action while the tip moves without the puck
STEERING = 2.0  # rotation of the push per angle between the tip and the line behind the puck

# For each reset grid: the path of the puck around the walls, xy [m], and the length of the action of a push along it.
ROUTES: tuple[tuple[tuple[tuple[float, float], ...], float], ...] = (
    (((0.14, -0.20), (0.14, 0.0)), 0.265),
    (((0.14, 0.20), (0.14, 0.0)), 0.26),
    (((-0.13, -0.13), (0.13, -0.15), (0.13, 0.0)), 0.42),
)


class Expert:
    """Policy that pushes the puck through anchor points.

    The tip moves around the puck to the side opposite to the next anchor, then pushes towards the anchor. The policy is
    a closed loop on positions: it steers back a push that drifts off the line, and restarts one that has drifted too
    far. If a goal is given, the path is straight and walls are ignored.

    Args:
        puck: Position of the puck at the start of the episode, world frame, shape (2,) or (3,) [m].
        goal: Goal on the free table, world frame, shape (2,) [m]; defaults to the goal in the slot, reached around its
            walls.
        radius: Radius of a vertical cylinder that encloses the puck at any yaw [m].
    """

    def __init__(self, puck: np.ndarray, goal: np.ndarray | None = None, radius: float = PUCK_RADIUS) -> None:
        self.contact = radius + ROD_RADIUS
        if goal is None:
            anchors, self.push = ROUTES[np.argmin(np.linalg.norm(GRIDS - puck[:2], axis=1))]
            self.anchors = [np.array(anchor) for anchor in (*anchors, SLOT.goal)]
            self.walls = _boxes(SLOT)
        else:
            self.anchors, self.push = [np.array(goal)], ROUTES[0][1]
            self.walls = np.empty((0, 2, 2))
        self._pushing = False

    def act(self, puck: np.ndarray, tip: np.ndarray) -> np.ndarray:
        """Choose the next action.

        Args:
            puck: Centre of the puck, world frame, xy first [m].
            tip: Tip of the pusher, world frame, xy first [m].

        Returns:
            Displacement of the tip, shape (2,), in [−1, 1].
        """
        puck, tip = puck[:2], tip[:2]
        while len(self.anchors) > 1 and np.linalg.norm(self.anchors[0] - puck) < REACHED:
            del self.anchors[0]
            self._pushing = False
        distance = float(np.linalg.norm(self.anchors[0] - puck))
        if len(self.anchors) == 1 and distance < SETTLED:
            return np.zeros(2)
        direction = (self.anchors[0] - puck) / distance
        offset = tip - puck
        angle = _angle(offset, -direction)
        radius = float(np.linalg.norm(offset))
        self._pushing = radius < self.contact + STANDOFF + 0.01 and abs(angle) < (LOST if self._pushing else ALIGNED)
        if self._pushing:
            return self._steer(direction, angle, distance)
        behind = puck - (self.contact + STANDOFF) * direction
        way = shortest_way(tip, behind, puck, self.walls, self.contact)
        step = way - tip
        length = float(np.linalg.norm(step))
        return step / max(length, 1e-9) * min(TRAVEL, 20.0 * length)

    def _steer(self, direction: np.ndarray, angle: float, distance: float) -> np.ndarray:
        """Return the action of a push along `direction`, rotated so that the tip moves back behind the puck."""
        turn = np.clip(STEERING * angle, -1.0, 1.0)
        cos, sin = np.cos(turn), np.sin(turn)
        heading = np.array([[cos, -sin], [sin, cos]]) @ direction
        speed = self.push if len(self.anchors) > 1 else min(self.push, 0.05 + 6.0 * distance)
        return heading * speed


def shortest_way(
    start: np.ndarray, target: np.ndarray, puck: np.ndarray, walls: np.ndarray, contact: float = CONTACT
) -> np.ndarray:
    """Find the first corner of the tip's shortest path that touches neither puck nor walls (visibility graph).

    Args:
        start: Position of the tip, world frame, xy, shape (2,) [m].
        target: Position to reach, world frame, xy, shape (2,) [m].
        puck: Centre of the puck, world frame, xy, shape (2,) [m].
        walls: Lower and upper corners of boxes, shape (walls, 2, 2) [m].
        contact: Largest distance of the tip from the puck's centre at which they touch [m].

    Returns:
        Next point on the path, reached in a straight line, shape (2,) [m]; the target itself if it is directly visible
        or no path exists.
    """
    ends = np.stack([start, target])
    detour = contact + DETOUR
    if _visible(ends, puck, walls, detour)[0, 1]:
        return target
    # Nodes: a polygon around the puck whose edges do not touch it, and the corners of the walls.
    angles = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)
    ring = puck + 1.001 * detour / np.cos(np.pi / 16) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    margin = 1.001 * WALL_CLEARANCE * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    corners = walls[:, [0, 0, 1, 1], 0], walls[:, [0, 1, 0, 1], 1]
    nodes = np.concatenate([ring, (np.stack(corners, axis=-1) + margin).reshape(-1, 2)])
    free = np.all((nodes > WORKSPACE[0]) & (nodes < WORKSPACE[1]), axis=1)
    free &= np.all(_clearance(nodes, puck, walls, detour) >= 0.0, axis=0)
    nodes = np.concatenate([ends, nodes[free]])
    length = np.linalg.norm(nodes[:, None] - nodes[None], axis=-1)
    length[~_visible(nodes, puck, walls, detour)] = np.inf
    cost, previous = np.full(len(nodes), np.inf), np.full(len(nodes), -1)
    cost[0], queue = 0.0, [(0.0, 0)]
    while queue:
        reached, node = heapq.heappop(queue)
        if node == 1:
            break
        if reached > cost[node]:
            continue
        for other in np.flatnonzero(reached + length[node] < cost):
            cost[other], previous[other] = reached + length[node, other], node
            heapq.heappush(queue, (cost[other], int(other)))
    node = 1
    while previous[node] > 0:
        node = previous[node]
    return nodes[node]


def _boxes(slot: SlotGeometry) -> np.ndarray:
    """Return lower and upper corners of the walls, shape (walls, 2, 2) [m]."""
    centre, size = (np.array([wall[i][:2] for wall in slot.walls().values()]) for i in (0, 1))
    return np.stack([centre - size, centre + size], axis=1)


def _visible(nodes: np.ndarray, puck: np.ndarray, walls: np.ndarray, detour: float) -> np.ndarray:
    """Return which pairs of nodes are connected by a free line, shape (nodes, nodes).

    From a node that is closer to an obstacle than allowed, motion that does not come closer to it is free.
    """
    samples = np.linspace(0.0, 1.0, 25)[:, None]
    points = nodes[:, None, None] * (1 - samples) + nodes[None, :, None] * samples  # (node, node, sample, 2)
    clearance = _clearance(points, puck, walls, detour)
    allowed = np.minimum(0.0, np.minimum(clearance[..., :1], clearance[..., -1:]))
    return np.all(clearance >= allowed - 1e-9, axis=(0, -1))


def _clearance(points: np.ndarray, puck: np.ndarray, walls: np.ndarray, detour: float) -> np.ndarray:
    """Return the distances of `points` (..., 2) from puck and walls beyond the allowed ones, (1 + walls, ...) [m]."""
    boxes = [np.maximum(np.maximum(low - points, points - high), 0.0) for low, high in walls]
    return np.stack(
        [np.linalg.norm(points - puck, axis=-1) - detour]
        + [np.linalg.norm(outside, axis=-1) - WALL_CLEARANCE for outside in boxes]
    )


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    """Return the signed angle from b to a [rad]."""
    return float(np.arctan2(b[0] * a[1] - b[1] * a[0], a @ b))
