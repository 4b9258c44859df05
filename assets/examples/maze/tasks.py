"""Mazes of Gymnasium-Robotics as tasks: ``python -m agents.train --task assets.examples.maze.tasks:u_maze``."""

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import gymnasium_robotics
import numpy as np

from agents.tasks import gymnasium_task
from shaping import BoxGoals

gym.register_envs(gymnasium_robotics)
HERE = Path(__file__).parent
Maze = list[list[Any]]
U: Maze = [[1, 1, 1, 1, 1], [1, "g", 0, 0, 1], [1, 1, 1, 0, 1], [1, "r", 0, 0, 1], [1, 1, 1, 1, 1]]
MEDIUM: Maze = [
    [1, 1, 1, 1, 1, 1, 1, 1],
    [1, "r", 0, 1, 1, 0, 0, 1],
    [1, 0, 0, 1, 0, 0, 0, 1],
    [1, 1, 0, 0, 0, 1, 1, 1],
    [1, 0, 0, 1, 0, 0, 0, 1],
    [1, 0, 1, 0, 0, 1, 0, 1],
    [1, 0, 0, 0, 1, 0, "g", 1],
    [1, 1, 1, 1, 1, 1, 1, 1],
]
OPEN: Maze = [[1] * 5, *[[1, "c", "c", "c", 1]] * 3, [1] * 5]  # resets and goals in any cell


def make_maze(maze: Maze, steps: int, render_mode: str | None = None) -> gym.Env:
    """Make a maze whose episodes end at the goal, or after a number of steps."""
    settings: dict[str, Any] = {"maze_map": maze, "continuing_task": False, "max_episode_steps": steps}
    return gym.make("PointMaze_UMaze-v3", render_mode=render_mode, **settings)


def make(maze: Maze, steps: int, render_mode: str | None = None) -> gym.Env:
    """Make a maze with the paper's observation: velocity [m/s], and displacement from the goal to the point [m]."""
    space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    return gym.wrappers.TransformObservation(make_maze(maze, steps, render_mode), relative, space)


def relative(seen: dict[str, np.ndarray]) -> np.ndarray:
    """Return velocity and displacement of an observation of PointMaze, which holds the position twice."""
    return np.concatenate([seen["observation"][2:], seen["achieved_goal"] - seen["desired_goal"]]).astype(np.float32)


def task(maze: Maze, steps: int, name: str) -> Any:
    """Make the task of a maze with its demonstration; the prior is learned in the open maze."""
    return gymnasium_task(
        partial(make, maze, steps),
        partial(make, OPEN, 100),
        goals=BoxGoals(4, displacement=slice(2, 4)),
        reached=0.45,  # as in PointMaze [m]
        success="success",
        demonstrations=HERE / f"{name}.hdf5",
        estimator=HERE / "open.pt",
        obs="relative",
        settings={"potential.radius": 0.6, "potential.spacing": 0.02},
        meaning="velocity [m/s], displacement from the goal to the point [m]; xy, world",
        action_meaning="force on the point; xy, world",
    )


u_maze = task(U, 300, "u-maze")
medium_maze = task(MEDIUM, 600, "medium-maze")
