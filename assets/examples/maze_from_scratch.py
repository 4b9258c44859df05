"""A task of your own, from nothing: the prior by play in an open maze, and a U-shaped maze by one demonstration."""

from functools import partial

import gymnasium as gym
import gymnasium_robotics

import assets
from agents import fit_value
from agents.tasks import gymnasium_task, register_task
from agents.train import main

gym.register_envs(gymnasium_robotics)
U = [[1, 1, 1, 1, 1], [1, "g", 0, 0, 1], [1, 1, 1, 0, 1], [1, "r", 0, 0, 1], [1, 1, 1, 1, 1]]
play = partial(gym.make, "PointMaze_Open-v3", continuing_task=False, max_episode_steps=100)
maze = partial(gym.make, "PointMaze_UMaze-v3", maze_map=U, continuing_task=False, max_episode_steps=300)
fit_value(play(), steps=20_000).save("open.pt")
shown = assets.path("examples/maze/u-maze.hdf5")
register_task("u-maze", gymnasium_task(maze, success="success", demonstrations=shown, estimator="open.pt"))
main(["--task", "u-maze", "--steps", "20000", "--potential.radius", "0.6"])
