"""The hand-coded, deliberately sub-optimal pusher that demonstrates the tasks.

It drives the puck through fixed anchor points around the slot, one after the other, gently and with a detour, so that
what it shows is feasible but about four times slower than necessary (the paper's demonstrations take 125 to 146 steps).
"""

import heapq

import numpy as np

from envs.push.geometry import GRIDS, PUCK_RADIUS, SLOT, WORKSPACE, SlotGeometry

ROD_RADIUS = 0.01  # [m]
CONTACT = PUCK_RADIUS + ROD_RADIUS  # from the puck's centre to the tip that touches it [m]
DETOUR = CONTACT + 0.012  # the tip keeps this distance when it goes around the puck [m]
WALL_CLEARANCE = ROD_RADIUS + 0.008  # [m]
STANDOFF = CONTACT + 0.01  # the tip waits here behind the puck before it pushes [m]
ALIGNED, LOST = np.deg2rad(12.0), np.deg2rad(50.0)  # begin to push, give up a push
REACHED = 0.02  # an anchor counts as reached within this distance [m]
SETTLED = 0.012  # the goal too; the puck has to stop there [m]
TRAVEL = 0.7  # action of the free tip
STEERING = 2.0  # turn of the push per angle between the tip and the line behind the puck

# From each reset grid: the puck's way around the walls, xy [m], and the action of a push along it.
ROUTES: tuple[tuple[tuple[tuple[float, float], ...], float], ...] = (
    (((0.14, -0.20), (0.14, 0.0)), 0.265),
    (((0.14, 0.20), (0.14, 0.0)), 0.26),
    (((-0.13, -0.13), (0.13, -0.15), (0.13, 0.0)), 0.42),
)


class Expert:
    """Push the puck through anchors: go around it to the far side of the next anchor, then push towards that.

    Closed loop on positions. A push that drifts off the line through the puck is steered back, one that is lost starts
    anew. Where a goal is given the way is straight, and no walls are seen.

    Args:
        puck: Position of the puck at the start of the episode, world frame, shape (2,) or (3,) [m].
        goal: Goal on the free table, shape (2,) [m]; the slot's, behind its walls, if not given.
    """

    def __init__(self, puck: np.ndarray, goal: np.ndarray | None = None) -> None:
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
        self._pushing = radius < STANDOFF + 0.01 and abs(angle) < (LOST if self._pushing else ALIGNED)
        if self._pushing:
            return self._steer(direction, angle, distance)
        behind = puck - STANDOFF * direction
        way = shortest_way(tip, behind, puck, self.walls)
        step = way - tip
        length = float(np.linalg.norm(step))
        return step / max(length, 1e-9) * min(TRAVEL, 20.0 * length)

    def _steer(self, direction: np.ndarray, angle: float, distance: float) -> np.ndarray:
        """Push along `direction`; the tip slides to the side on which the puck would turn away."""
        turn = np.clip(STEERING * angle, -1.0, 1.0)
        cos, sin = np.cos(turn), np.sin(turn)
        heading = np.array([[cos, -sin], [sin, cos]]) @ direction
        speed = self.push if len(self.anchors) > 1 else min(self.push, 0.05 + 6.0 * distance)
        return heading * speed


def shortest_way(start: np.ndarray, target: np.ndarray, puck: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """Find the first corner of the shortest way of the tip that touches neither puck nor walls (a visibility graph).

    Args:
        start: Tip, xy [m].
        target: Where it shall go, xy [m].
        puck: Centre of the puck, xy [m].
        walls: Lower and upper corners of boxes, shape (walls, 2, 2) [m].

    Returns:
        Next point to go to in a straight line, shape (2,) [m]; the target itself if nothing is in between or no way is.
    """
    ends = np.stack([start, target])
    if _visible(ends, puck, walls)[0, 1]:
        return target
    # a polygon around the puck whose edges stay clear of it, and the corners of the walls
    angles = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)
    ring = puck + 1.001 * DETOUR / np.cos(np.pi / 16) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    margin = 1.001 * WALL_CLEARANCE * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    corners = walls[:, [0, 0, 1, 1], 0], walls[:, [0, 1, 0, 1], 1]
    nodes = np.concatenate([ring, (np.stack(corners, axis=-1) + margin).reshape(-1, 2)])
    free = np.all((nodes > WORKSPACE[0]) & (nodes < WORKSPACE[1]), axis=1)
    free &= np.all(_clearance(nodes, puck, walls) >= 0.0, axis=0)
    nodes = np.concatenate([ends, nodes[free]])
    length = np.linalg.norm(nodes[:, None] - nodes[None], axis=-1)
    length[~_visible(nodes, puck, walls)] = np.inf
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
    """Lower and upper corners of the walls, shape (walls, 2, 2) [m]."""
    centre, size = (np.array([wall[i][:2] for wall in slot.walls().values()]) for i in (0, 1))
    return np.stack([centre - size, centre + size], axis=1)


def _visible(nodes: np.ndarray, puck: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """Tell which pairs of nodes see each other; a node that is too close to something may move away from it."""
    samples = np.linspace(0.0, 1.0, 25)[:, None]
    points = nodes[:, None, None] * (1 - samples) + nodes[None, :, None] * samples  # (node, node, sample, 2)
    clearance = _clearance(points, puck, walls)
    allowed = np.minimum(0.0, np.minimum(clearance[..., :1], clearance[..., -1:]))
    return np.all(clearance >= allowed - 1e-9, axis=(0, -1))


def _clearance(points: np.ndarray, puck: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """Distance of the tip at `points` (..., 2) from touching the puck and each wall, shape (1 + walls, ...) [m]."""
    boxes = [np.maximum(np.maximum(low - points, points - high), 0.0) for low, high in walls]
    return np.stack(
        [np.linalg.norm(points - puck, axis=-1) - DETOUR]
        + [np.linalg.norm(outside, axis=-1) - WALL_CLEARANCE for outside in boxes]
    )


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    """Signed angle from b to a [rad]."""
    return float(np.arctan2(b[0] * a[1] - b[1] * a[0], a @ b))
