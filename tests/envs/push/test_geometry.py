"""What the layout of table, slot and reset grids promises, without a simulation."""

import numpy as np
import pytest

from envs.push.geometry import GRID_HALF_SIZE, GRIDS, PUCK_RADIUS, SLOT, TABLE_SIZE, WORKSPACE
from envs.push.placement import Placement

RANGE = 0.08  # demonstrated states attract the puck from here [m]
BOXES = [(np.array(centre[:2]), np.array(size[:2])) for centre, size in SLOT.walls().values()]


def gaps(points: np.ndarray) -> np.ndarray:
    """Distance of points (n, 2) from the nearest wall [m]."""
    outside = [np.maximum(np.abs(points - centre) - size, 0.0) for centre, size in BOXES]
    return np.min([np.linalg.norm(o, axis=1) for o in outside], axis=0)


def test_a_puck_pushed_home_succeeds_wherever_it_lies_across_the_slot():
    across = np.linspace(-1, 1, 21) * (SLOT.half_width - PUCK_RADIUS)
    home = np.array(SLOT.goal) + np.stack([np.full(21, PUCK_RADIUS - SLOT.depth), across], axis=1)
    assert np.all(gaps(home) >= PUCK_RADIUS - 1e-9)
    assert np.linalg.norm(home - SLOT.goal, axis=1).max() < 0.02


def test_no_trap_behind_a_wall():
    """A puck that cannot be pushed straight to the goal, since a wall is in between, is out of range."""
    x, y = np.meshgrid(np.linspace(-0.2, 0.2, 161), np.linspace(-0.2, 0.2, 161))
    pucks = np.stack([x.ravel(), y.ravel()], axis=1)
    pucks = pucks[gaps(pucks) >= PUCK_RADIUS]
    way = np.linspace(0.0, 1.0, 100)[:, None, None]
    blocked = np.any(
        [gaps(p * way[i] + np.array(SLOT.goal) * (1 - way[i])) == 0.0 for i, p in enumerate([pucks] * 100)], axis=0
    )
    assert blocked.any() and not blocked.all()
    assert np.linalg.norm(pucks - SLOT.goal, axis=1)[blocked].min() > RANGE


def test_the_slot_opens_towards_x():
    way = np.array(SLOT.goal) + np.linspace(0.0, 0.2, 50)[:, None] * np.array([1.0, 0.0])
    assert gaps(way).min() >= PUCK_RADIUS


def test_starts_touch_nothing():
    corners = GRIDS[:, None] + GRID_HALF_SIZE * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    assert gaps(corners.reshape(-1, 2)).min() > PUCK_RADIUS
    assert np.all(np.abs(corners) + PUCK_RADIUS < np.array(TABLE_SIZE[:2]) / 2)


@pytest.mark.parametrize("slot", [True, False])
def test_sampled_starts(slot):
    """Distances and goals fill the paper's ranges (appendix)."""
    placement, rng = Placement(slot=slot, grids=3 if slot else 1), np.random.default_rng(0)
    starts = [placement.sample(rng) for _ in range(300)]
    pucks, tips, goals = (np.array(rows) for rows in zip(*starts, strict=True))
    assert np.all((tips >= WORKSPACE[0]) & (tips <= WORKSPACE[1]))
    distance, (near, far) = np.linalg.norm(tips - pucks, axis=1), (0.10, 0.15) if slot else (0.05, 0.13)
    assert near <= distance.min() < near + 0.005 and far - 0.005 < distance.max() <= far
    assert len(np.unique(pucks, axis=0)) == 300
    if slot:
        grid = np.argmax(np.all(np.abs(pucks[:, None] - GRIDS) <= GRID_HALF_SIZE + 1e-12, axis=-1), axis=1)
        assert np.bincount(grid, minlength=3).min() > 60
        assert gaps(tips).min() > 0.01
        np.testing.assert_array_equal(goals, np.tile([*SLOT.goal, 0.0, 0.0], (300, 1)))
    else:
        reach = np.abs(goals - np.pad(pucks, [(0, 0), (0, 2)])).max(axis=0)
        assert np.all((reach > [0.095, 0.095, 0.045, 0.045]) & (reach <= [0.1, 0.1, 0.05, 0.05]))


def test_unknown_number_of_grids():
    with pytest.raises(ValueError, match="grids is 4; this task has reset grids 1 to 3"):
        Placement(slot=True, grids=4)
