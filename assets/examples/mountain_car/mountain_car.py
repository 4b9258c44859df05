"""Gymnasium's mountain car as a sparse task: ``--task assets.examples.mountain_car.mountain_car:car``."""

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from agents.tasks import gymnasium_task
from shaping import BoxGoals

HERE = Path(__file__).parent
SCALE = np.array([1.0, 10.0])  # of position and velocity, which then have a range of about 1 each
FLAG = np.array([0.5, 0.6])  # top of the hill, at speed


class Car(gym.Wrapper):
    """The car observed as [position, 10 velocity, their goal]; play starts anywhere and has goals anywhere."""

    def __init__(self, play: bool = False, steps: int = 300, render_mode: str | None = None):
        super().__init__(gym.make("MountainCarContinuous-v0", max_episode_steps=steps, render_mode=render_mode))
        self.play, self.goal = play, FLAG
        self.observation_space = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return np.concatenate([SCALE * state, self.goal]).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        state, info = self.env.reset(seed=seed, options=options)
        if self.play:
            low, high = np.array([-1.2, -0.06]), np.array([0.55, 0.06])
            simulator: Any = self.unwrapped
            state = simulator.state = self.np_random.uniform(low, high)
            self.goal = SCALE * self.np_random.uniform(low, high)
        return self.observe(state), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        state, _, flag, late, _ = self.env.step(action)
        return self.observe(state), 0.0, flag and not self.play, late, {"is_success": flag}


car = gymnasium_task(
    Car,
    partial(Car, play=True, steps=60),
    goals=BoxGoals(4, achieved=slice(0, 2), desired=slice(2, 4)),
    reached=0.1,
    demonstrations=HERE / "demo.hdf5",
    estimator=HERE / "prior.pt",
    settings={"potential.radius": 0.2},
    meaning="position, 10 velocity, and the goal of both",
)

if __name__ == "__main__":  # the demonstration: push the way the car rolls
    env = Car()
    observations, actions = [env.reset(seed=0)[0]], []
    while observations[-1][0] < 0.45:
        actions.append(np.sign(observations[-1][1:2] + 1e-9))
        observations.append(env.step(actions[-1])[0])
    np.savez(HERE / "demo.npz", state=observations, actions=actions)
