"""The mazes of the examples: demonstrations, observation and prior fit each other."""

from collections import deque

import numpy as np
import pytest

from agents.tasks import register_task, registry
from assets.examples.maze.demonstrate import shortest_path
from assets.examples.maze.tasks import MEDIUM, U, make, make_maze, medium_maze, u_maze
from envs.demonstrations import load_demonstrations
from shaping import Potential, ValueEstimator

BOUNDS = -np.ones(2), np.ones(2)


@pytest.mark.parametrize("maze", [U, MEDIUM])
def test_the_shortest_path_is_as_long_as_the_distance(maze):
    """By a flood of the maze from its goal."""
    path = shortest_path(maze)
    free = {(i, j) for i, row in enumerate(maze) for j, cell in enumerate(row) if cell != 1}
    distance, queue = {path[-1]: 0}, deque([path[-1]])
    while queue:
        i, j = queue.popleft()
        for cell in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if cell in free and cell not in distance:
                distance[cell] = distance[i, j] + 1
                queue.append(cell)
    assert [distance[cell] for cell in path] == list(range(len(path) - 1, -1, -1))


@pytest.mark.parametrize("task, maze, steps", [(u_maze, U, 300), (medium_maze, MEDIUM, 600)])
def test_the_demonstration_plays_back_to_the_goal(task, maze, steps):
    view = task.view("relative")
    shapes = {"relative": view.space.shape}
    (shown,) = load_demonstrations(task.demonstrations[1], "relative", shapes=shapes, actions=BOUNDS)
    env = make(maze, steps)
    observation, _ = env.reset(seed=shown.seed)
    for action, expected in zip(shown.actions, shown.observations["relative"][1:], strict=True):
        np.testing.assert_allclose(observation[2:], view.goals.extract(observation))
        observation, _, _, _, info = env.step(action)
        np.testing.assert_allclose(observation, expected, atol=1e-4)
    assert info["success"] and view.reached(view.goals.extract(observation))


def test_the_potential_of_the_prior_rises_along_the_demonstration():
    shapes = {"relative": (4,)}
    (shown,) = load_demonstrations(u_maze.demonstrations[1], "relative", shapes=shapes, actions=BOUNDS)
    rows = shown.observations["relative"]
    along = Potential(ValueEstimator.load(u_maze.view("relative").estimator), [rows], radius=0.6)(rows)
    assert np.diff(along).min() > -0.02 and along[0] < 0.4 < 0.95 < along[-1]


def test_the_task_observes_the_relative_position():
    register_task("u", u_maze)
    try:
        env = u_maze.make(obs="relative", grids=1, render_mode=None)
        observation, _ = env.reset(seed=5)
        base = env.unwrapped
        np.testing.assert_allclose(observation[2:], base.point_env.data.qpos - base.goal, atol=1e-6)
        assert make_maze(U, 300).spec.max_episode_steps == env.get_wrapper_attr("horizon") == 300
    finally:
        del registry._TASKS["u"]
