"""Record a demonstration in each maze: ``python -m assets.examples.maze.demonstrate``.

A proportional-derivative controller follows the shortest path through the cells of the maze.
"""

from collections import deque
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from assets.examples.maze.tasks import HERE, MEDIUM, Maze, U, make_maze, relative
from envs.demonstrations import Trajectory, save_demonstrations


def shortest_path(maze: Maze) -> list[tuple[int, int]]:
    """Return the cells of the shortest path from "r" to "g" (row, column), by breadth-first search."""
    cells = {(i, j): value for i, row in enumerate(maze) for j, value in enumerate(row) if value != 1}
    start, goal = (next(cell for cell, value in cells.items() if value == name) for name in "rg")
    before: dict[tuple[int, int], Any] = {start: None}
    queue = deque([start])
    while queue:
        i, j = cell = queue.popleft()
        for following in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if following in cells and following not in before:
                before[following] = cell
                queue.append(following)
    path = [goal]
    while before[path[-1]] is not None:
        path.append(before[path[-1]])
    return path[::-1]


def demonstrate(maze: Maze, steps: int, out: Path, seed: int = 0) -> None:
    """Drive the point through the maze once and write the demonstration."""
    env = make_maze(maze, steps)
    base: Any = env.unwrapped
    observation, _ = env.reset(seed=seed)
    ways = [base.maze.cell_rowcol_to_xy(np.array(cell)) for cell in shortest_path(maze)]
    ways[-1] = base.goal
    rows: list[Any] = [observation]
    actions: list[np.ndarray] = []
    ended = False
    while not ended:
        position, velocity = np.split(observation["observation"], 2)
        if len(ways) > 1 and np.linalg.norm(ways[0] - position) < 0.3:
            ways.pop(0)
        actions.append(np.clip(3.0 * (ways[0] - position) - 0.5 * velocity, -1, 1).astype(np.float32))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        rows.append(observation)
        ended = terminated or truncated
    assert info["success"], f"the controller did not reach the goal in {steps} steps"
    flat: list[Any] = [gym.spaces.flatten(env.observation_space, row) for row in rows]
    seen = {
        "state": np.stack(flat).astype(np.float32),
        "relative": np.stack([relative(row) for row in rows]),
    }
    trajectory = Trajectory(seen, np.stack(actions), seed=seed)
    described = {"env_name": "PointMaze_UMaze-v3", "type": 2, "env_kwargs": {"maze_map": maze}}
    save_demonstrations(out, [trajectory], described, overwrite=True)
    print(f"{out.name}: {trajectory.horizon} steps")


if __name__ == "__main__":
    demonstrate(U, 300, HERE / "u-maze.hdf5")
    demonstrate(MEDIUM, 600, HERE / "medium-maze.hdf5")
