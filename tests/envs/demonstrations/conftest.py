"""A file of two demonstrations of random numbers."""

import numpy as np
import pytest

from envs.demonstrations import Trajectory, save_demonstrations


def trajectory(horizon: int, seed: int = 0, actions: bool = True) -> Trajectory:
    rng = np.random.default_rng(seed)
    shapes = {"state": (8,), "pointcloud": (20, 4), "puck_pose": (7,)}
    observations = {name: rng.normal(size=(horizon + 1, *shape)) for name, shape in shapes.items()}
    return Trajectory(observations, rng.uniform(-1, 1, (horizon, 2)) if actions else None, grid=seed % 3, seed=seed)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "demonstrations.hdf5"
    save_demonstrations(path, [trajectory(5, 0), trajectory(3, 1)], {"env_name": "PushSlot-v0"})
    return path
