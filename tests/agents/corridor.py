"""A task of a user: a GoalEnv with a wall, actions from 0 to 4, and a demonstration around the wall."""

from functools import partial
from pathlib import Path
from typing import ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TimeLimit

from agents.tasks import gymnasium_task
from envs.demonstrations import Trajectory, save_demonstrations

HERE = Path(__file__).parent


class Corridor(gym.Env):
    """A point in the plane that moves by up to 0.2 along each axis; an action of 2 is to stay.

    It reports success as ``info["won"]``, and does not end there.
    """

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 10}
    action_space = gym.spaces.Box(0.0, 4.0, (2,), np.float64)
    observation_space = gym.spaces.Dict(
        {
            "achieved_goal": gym.spaces.Box(-2, 2, (2,)),
            "desired_goal": gym.spaces.Box(-2, 2, (2,)),
            "observation": gym.spaces.Box(-2, 2, (2,)),
        }
    )

    def __init__(self, render_mode=None, roaming=False):
        self.render_mode, self.roaming = render_mode, roaming

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.point = self.np_random.uniform(-1, 1, 2) if self.roaming else self.np_random.uniform(-0.9, -0.7, 2)
        self.goal = self.np_random.uniform(-1, 1, 2) if self.roaming else np.full(2, 0.8)
        return self.seen(), {}

    def step(self, action):
        self.point = np.clip(self.point + 0.1 * (np.asarray(action) - 2), -1, 1)
        return self.seen(), 7.0, False, False, {"won": bool(self.compute_reward(self.point, self.goal, {}) == 0)}

    def seen(self):
        return {"achieved_goal": self.point, "desired_goal": self.goal, "observation": self.point / 2}

    def render(self):
        return np.zeros((64, 64, 3), np.uint8)

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.25).astype(float)


def make(render_mode=None, roaming=False):
    return TimeLimit(Corridor(render_mode, roaming), 40)


def write_demonstration(path, stop=12):
    """Write the walk along the diagonal, in the actions of the environment."""
    env = make()
    flat = gym.wrappers.FlattenObservation(env)
    observation, _ = flat.reset(seed=3)
    rows, actions = [observation], []
    for _ in range(stop):
        actions.append(np.full(2, 3.6))
        rows.append(flat.step(actions[-1])[0])
    save_demonstrations(path, [Trajectory({"place": np.stack(rows)}, np.stack(actions))], {"env_name": "corridor"})


corridor = gymnasium_task(
    make,
    partial(make, roaming=True),
    success="won",
    obs="place",
    demonstrations=Path("corridor.hdf5"),
    settings={"potential.radius": 0.9, "steps": 120, "learner.learning_starts": 40, "learner.batch_size": 16},
)
