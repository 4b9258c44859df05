"""Proposition 1: with γ̄ = 0 the greedy agent reaches the goal; without any of its assumptions it may not.

The MDP is a grid with a U-shaped wall. An observation carries the cell in the arm's columns, so that a tabular
estimator can tell where the walls are; the goal-relevant columns are the puck's displacement, as always.
"""

from collections import deque

import numpy as np
import pytest
import torch

from shaping import Potential, make_goals, shaped_reward

GRID = (
    ".......",
    ".###...",
    "..G#...",
    ".###...",
    ".......",
)
CELL = 0.02  # m
GAMMA = 0.95
DECAY = 0.9  # of Ṽ per step: of the right shape, but not calibrated
CELLS = [(i, j) for i, row in enumerate(GRID) for j, mark in enumerate(row) if mark != "#"]
GOAL = (2, 2)
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
SUM_AND_PRODUCT = pytest.mark.parametrize("combine", ["sum", "product"])


def move(cell, step):
    following = (cell[0] + step[0], cell[1] + step[1])
    return following if following in CELLS else cell


def shortest_path(start, end):
    before, queue = {start: start}, deque([start])
    while end not in before:
        cell = queue.popleft()
        for step in MOVES:
            if (following := move(cell, step)) not in before:
                before[following] = cell
                queue.append(following)
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]


def observe(cells) -> np.ndarray:
    cells = np.asarray(cells, dtype=np.float32)
    still = np.zeros_like(cells)
    return np.concatenate([cells * CELL, still, (cells - GOAL) * CELL, still], axis=1).astype(np.float32)


def steps_around_walls(a, b):
    return len(shortest_path(a, b)) - 1


def steps_through_walls(a, b):
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


class Tabular:
    """Ṽ_g(s; g) = DECAY^distance(s, g)."""

    def __init__(self, distance):
        self.goals = make_goals("state")
        self.table = {(a, b): DECAY ** distance(a, b) for a in CELLS for b in CELLS}

    def __call__(self, observation):
        cell = (observation[:, :2] / CELL).round().int()
        goal = cell - (observation[:, 4:6] / CELL).round().int()
        return torch.tensor([self.table[tuple(a), tuple(b)] for a, b in zip(cell.tolist(), goal.tolist(), strict=True)])


# An expert's detour over the top, where the way along the bottom is shorter.
DEMONSTRATION = [
    *shortest_path((4, 6), (0, 6))[:-1],
    *shortest_path((0, 6), (0, 0))[:-1],
    *shortest_path((0, 0), (2, 0))[:-1],
    *shortest_path((2, 0), GOAL),
]


def make_potential(combine, distance=steps_around_walls, beta=DECAY**7, **settings) -> Potential:
    return Potential(
        Tabular(distance), [observe(DEMONSTRATION)], combine=combine, beta=beta, gamma=GAMMA, radius=1.0, **settings
    )


def always_reached(potential: Potential) -> set:
    """Return the cells from which every greedy trajectory, ties broken in any way, enters the goal."""
    success = np.array([cell == GOAL for cell in CELLS])
    value = dict(zip(CELLS, potential(observe(CELLS), success).tolist(), strict=True))
    greedy = {}
    for cell in CELLS:
        reward = {}
        for step in MOVES:
            following = move(cell, step)
            reward[following] = shaped_reward(float(following == GOAL), value[cell], value[following], GAMMA)
        greedy[cell] = {following for following, r in reward.items() if r >= max(reward.values()) - 1e-6}
    reached = {GOAL}
    while more := {cell for cell in CELLS if cell not in reached and greedy[cell] <= reached}:
        reached |= more
    return reached


@SUM_AND_PRODUCT
def test_greedy_reaches_the_goal_from_everywhere(combine):
    potential = make_potential(combine)
    table = potential.estimator.table
    nearest = {cell: max(table[cell, shown] for shown in DEMONSTRATION) for cell in CELLS}
    assert min(nearest.values()) >= potential.beta, "assumption 3: the demonstration's tube covers the grid"
    assert len(set(DEMONSTRATION)) == len(DEMONSTRATION) < len(CELLS), "some cells are not demonstrated"
    assert always_reached(potential) == set(CELLS)


@SUM_AND_PRODUCT
def test_without_assumption_1_a_flat_value_leaves_nothing_to_follow(combine):
    assert always_reached(make_potential(combine, distance=lambda a, b: 0)) != set(CELLS)


@SUM_AND_PRODUCT
def test_without_assumption_2_the_agent_stops_at_a_wall(combine):
    """A value that sees through walls has its maximum where the puck rests against the wall's back."""
    reached = always_reached(make_potential(combine, distance=steps_through_walls))
    assert (2, 4) not in reached, "the cell behind the slot, two steps from the goal through its wall"


@SUM_AND_PRODUCT
def test_without_assumption_3_the_agent_is_lost_outside_the_tube(combine):
    sparse = Potential(
        Tabular(steps_around_walls),
        [observe(DEMONSTRATION[-3:])],
        combine=combine,
        beta=DECAY,
        gamma=GAMMA,
        radius=1.0,
    )
    reached = always_reached(sparse)
    assert (2, 0) in reached and (4, 6) not in reached
