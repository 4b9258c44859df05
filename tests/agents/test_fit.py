"""A prior for environments that are not the pushing task."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from agents import fit_value, fit_value_offline
from agents.prior.config import GoalLearnerConfig, OfflineConfig
from shaping import BoxGoals, Potential, ValueEstimator
from shaping.success.play import Play

GOALS = BoxGoals(5, achieved=slice(0, 2), desired=slice(3, 5))


class Field(gym.Env):
    """A point that moves by at most 0.25 along each axis; the observation is [x, y, colour, goal x, goal y]."""

    observation_space = gym.spaces.Box(-2, 2, (5,))
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.point, self.goal = self.np_random.uniform(-1, 1, (2, 2))
        self.steps = 0
        return self.seen(), {}

    def step(self, action):
        self.point = np.clip(self.point + 0.25 * action, -1.5, 1.5)
        self.steps += 1
        return self.seen(), 0.0, False, self.steps == 40, {}

    def seen(self):
        return np.concatenate([self.point, [0.3], self.goal]).astype(np.float32)


class GoalField(Field):
    """The same with the sparse reward of a GoalEnv, 0 at the goal and −1 elsewhere."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.25).astype(np.float32)


@pytest.mark.slow
def test_the_value_is_the_discount_to_the_steps_that_remain(tmp_path, capsys):
    """The steps to a goal follow from the distances along both axes, of which a step covers 0.25."""
    learner = GoalLearnerConfig(value_steps=1500, learning_starts=200, learning_rate=1e-3)
    value = fit_value(GoalField(), GOALS, steps=3000, learner=learner, episodes=50, plot=tmp_path / "plot.png")
    assert "goal policy succeeds in 100% of 50 episodes" in capsys.readouterr().out
    assert (tmp_path / "plot.png").stat().st_size > 1000
    rng = np.random.default_rng(5)
    point, goal = rng.uniform(-1, 1, (2, 200, 2))
    outside = np.linalg.norm(point - goal, axis=1) > 0.25
    point, goal = point[outside], goal[outside]
    apart = np.abs(point - goal)
    seen = np.concatenate([point, np.full((len(point), 1), 0.3), goal], axis=1).astype(np.float32)
    steps = np.array([sum(np.linalg.norm(np.maximum(away - 0.25 * n, 0)) > 0.25 for n in range(9)) for away in apart])
    estimated = value(torch.from_numpy(seen)).detach().numpy()
    assert np.abs(estimated - 0.99**steps).mean() < 0.03
    assert np.corrcoef(estimated, -steps)[0, 1] > 0.9

    value.save(tmp_path / "value.pt")
    loaded = ValueEstimator.load(tmp_path / "value.pt", observation="state")
    assert loaded.goals == GOALS and loaded.action_dim == 2
    torch.testing.assert_close(loaded(torch.from_numpy(seen)), value(torch.from_numpy(seen)))

    path = np.linspace([-1.0, 0.0], [0.75, 0.0], 8)
    shown = np.concatenate([path, np.full((8, 1), 0.3), np.tile([0.8, 0.0], (8, 1))], axis=1).astype(np.float32)
    along = Potential(loaded, [shown], radius=0.6)(shown)
    assert np.all(np.diff(along) > -0.01) and along[0] < 0.96 < along[-1]  # a step is worth 0.01


def test_a_fit_from_episodes_asks_an_environment_when_a_goal_is_reached(capsys):
    env, rng, episodes = GoalField(), np.random.default_rng(0), []
    for seed in range(20):
        seen, actions = [env.reset(seed=seed)[0]], rng.uniform(-1, 1, (10, 2))
        seen += [env.step(action)[0] for action in actions]
        episodes.append((np.array(seen), actions))
    learner = OfflineConfig(value_steps=20, batch_size=64)
    value = fit_value_offline(episodes, GOALS, env=env, steps=50, learner=learner, trials=20)
    assert "goal policy" in capsys.readouterr().out  # how often it succeeds after 50 steps, if ever
    actions = value.act(torch.from_numpy(episodes[0][0])).detach()
    assert actions.shape == (11, 2) and (actions.abs() <= 1).all()


def test_play_ends_where_the_observed_goal_is_reached():
    for env, reached in ((GoalField(), None), (Field(), 0.25), (Field(), lambda offset: (abs(offset) < 0.17).all(-1))):
        play = Play(env, GOALS, reached)
        observation, info = play.reset(seed=0)
        for _ in range(40):
            away = observation[:2] - observation[3:]
            np.testing.assert_allclose(info["achieved_goal"], away, atol=1e-6)
            assert not info["is_success"] and np.linalg.norm(away) > 0.17
            observation, reward, terminated, truncated, info = play.step(np.clip(-away / 0.25, -1, 1))
            assert reward == terminated == info["is_success"] and not truncated
            if terminated:
                break
        assert terminated and np.linalg.norm(observation[:2] - observation[3:]) <= 0.25


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="has no compute_reward: give reached="):
        fit_value(Field(), GOALS)
    with pytest.raises(ValueError, match=r"the goals are for shape \(4,\); flatten a dictionary"):
        fit_value(GoalField(), BoxGoals(4, displacement=slice(0, 2)))


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"plot": "missing/plot.png"}, "missing: no such directory for plot="),
        ({"episodes": 0}, "episodes is 0"),
        ({"reached": -1.0}, "reached is -1.0; give a distance above 0"),
        ({"steps": 1000}, "steps is 1000; give more than learner.learning_starts"),
        ({"learner": GoalLearnerConfig(relabelled=5.0)}, "learner.relabelled is 5"),
    ],
)
def test_arguments_are_checked_before_the_training(settings, said, capsys):
    with pytest.raises((ValueError, OSError), match=said):
        fit_value(GoalField(), GOALS, **settings)
    assert "prior:" not in capsys.readouterr().out
