"""Environments from which no task, prior or success can be made say so in one line."""

from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from agents import fit_value
from agents.collecting.finite_env import FiniteEnv
from agents.tasks import gymnasium_task
from shaping import BoxGoals
from shaping.success.reached import goal_test
from shaping.success.sparse import SparseSuccess
from tests.agents.corridor import Corridor, corridor, make

GOALS = BoxGoals(6, achieved=slice(0, 2), desired=slice(2, 4))


@pytest.mark.parametrize(
    "space, said",
    [
        (gym.spaces.Box(0, 5, (2,), np.int32), "real numbers: convert them in a wrapper"),
        (gym.spaces.Box(np.float32([-1, 0]), np.float32([1, 0])), r"numbers \[1\] have no range"),
        (gym.spaces.Box(-np.inf, np.inf, (2,)), "a bounded Box of one axis"),
        (gym.spaces.Discrete(3), "a bounded Box of one axis"),
    ],
)
def test_actions_that_an_agent_cannot_have_are_refused(space, said):
    def other(render_mode=None):
        return gym.wrappers.TransformAction(make(render_mode=render_mode), lambda action: action, space)

    with pytest.raises(ValueError, match=said):
        gymnasium_task(other)
    with pytest.raises(ValueError, match=said):
        fit_value(other(), GOALS, reached=0.1)


class Dense(Corridor):
    """The same with a reward that is not sparse, and `info` as given."""

    said: ClassVar[dict[str, bool]] = {}

    def step(self, action):
        return (*super().step(action)[:4], self.said)

    def compute_reward(self, achieved, desired, info):
        return -np.linalg.norm(achieved - desired, axis=-1)


class DenseSaid(Dense):
    said: ClassVar[dict[str, bool]] = {"won": False}


class Asking(Corridor):
    """Its reward reads `info`."""

    def compute_reward(self, achieved, desired, info):
        return super().compute_reward(achieved, desired, {}) + 0 * info["height"]


def dense(render_mode=None):
    return TimeLimit(DenseSaid(render_mode), 40)


def test_a_reward_that_reads_info_needs_the_distance():
    with pytest.raises(ValueError, match=r"compute_reward of .* failed \(KeyError: 'height'\); give reached="):
        goal_test(GOALS, None, Asking())


def test_a_dense_reward_does_not_tell_success():
    """It is refused, unless the user says what is reached."""
    with pytest.raises(ValueError, match=r"compute_reward of .* is not sparse.* give reached=.* success="):
        goal_test(GOALS, None, Dense())
    steps = SparseSuccess(TimeLimit(Dense(), 40))
    steps.reset(seed=0)
    with pytest.raises(ValueError, match="is not sparse"):
        steps.step(np.full(2, 3.6))
    task = gymnasium_task(dense, dense, success="won")  # which needs no prior
    assert task.view("state").reached is None
    env = task.make(obs="state", grids=1, render_mode=None)
    env.reset(seed=0)
    assert not env.step(np.zeros(2))[4]["is_success"]
    with pytest.raises(ValueError, match="is not sparse"):
        task.make_play()
    for wrong in (float("inf"), float("nan"), -1.0):
        with pytest.raises(ValueError, match="give a distance above 0"):
            goal_test(GOALS, wrong, Dense())
    near = goal_test(GOALS, 0.1, Dense())
    assert near(np.array([[0.05, 0.0], [0.2, 0.0]])).tolist() == [True, False]


def test_an_observation_of_another_shape_is_one_line():
    class Wrong(gym.ObservationWrapper):
        def observation(self, observation):
            return observation[:-1]

    env = FiniteEnv(Wrong(corridor.make(obs="state", grids=1, render_mode=None)), "training")
    with pytest.raises(
        ValueError, match=r"returned an observation of shape \(5,\), but its observation space has \(6,\)"
    ):
        env.reset(seed=0)
