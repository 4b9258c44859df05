"""What relabelled goals tell about the motion that an observation hides."""

import gymnasium as gym
import numpy as np
import pytest

from agents.prior.config import GoalLearnerConfig, PretrainConfig
from agents.prior.learner import make_goal_learner, make_play
from agents.replay.hindsight import NEARBY, HindsightReplayBuffer
from shaping.goals import make_goals

STILL = np.zeros(2)
SPACES = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32)


def near(achieved, desired, info=None):
    return (np.linalg.norm((achieved - desired)[..., :2], axis=-1) < 0.02).astype(float)


def make_buffer(**settings):
    """Fill with pucks that slide straight on at 1 cm a step, of which the observation shows no velocity."""
    rng = np.random.default_rng(0)
    buffer = HindsightReplayBuffer(
        1000, *SPACES, goals=make_goals("state"), compute_reward=near, goal_speed=0.0, relabelled=1.0, **settings
    )
    goal = np.zeros(4)
    for _ in range(50):
        angle = rng.uniform(0, 2 * np.pi)
        motion = 0.01 * np.array([np.cos(angle), np.sin(angle)])
        puck = rng.normal(0, 0.05, 2)
        for step in range(20):
            rows = [np.float32([[*motion, 0, 0, *p, 0, 0]]) for p in (puck, puck + motion)]
            puck = puck + motion
            info = {"achieved_goal": np.concatenate([puck, STILL]), "desired_goal": goal}
            buffer.add(*rows, np.zeros((1, 2)), np.zeros(1), np.array([step == 19]), [info])
    return buffer


def alignment(batch):
    """Mean cosine between the hidden motion and the direction of the relabelled goal."""
    motion, to_goal = batch.observations[:, :2].numpy(), -batch.observations[:, 4:6].numpy()
    cosine = (motion * to_goal).sum(1) / np.linalg.norm(motion, axis=1) / np.linalg.norm(to_goal, axis=1)
    return cosine.mean()


def test_goals_of_the_future_give_hidden_motion_away_and_those_nearby_do_not():
    assert alignment(make_buffer().sample(2000)) > 0.99
    assert abs(alignment(make_buffer(nearby=1.0).sample(2000))) < 0.05


def test_goals_nearby_lie_around_the_puck_and_are_rewarded_where_the_next_state_reaches_them():
    batch = make_buffer(nearby=1.0).sample(2000)
    distance = batch.observations[:, 4:6].norm(dim=1).numpy()
    assert distance.max() <= NEARBY + 1e-6
    assert np.histogram(distance, 5, (0, NEARBY))[0].min() > 300
    reached = batch.next_observations[:, 4:6].norm(dim=1).numpy() < 0.02
    assert 0 < reached.mean() < 0.5
    assert (batch.rewards.numpy()[:, 0] == reached).all()
    assert (batch.dones == batch.rewards).all()


@pytest.mark.parametrize(("steps", "expected"), [(1000, 1.0), (2000, 0.5)])
def test_the_share_nearby_rises_with_the_steps(steps, expected):
    batch = make_buffer(nearby=1.0, nearby_steps=steps).sample(4000)
    motion, to_goal = batch.observations[:, :2].numpy(), -batch.observations[:, 4:6].numpy()
    along = motion[:, 0] * to_goal[:, 1] - motion[:, 1] * to_goal[:, 0]
    assert (np.abs(along) > 1e-6).mean() == pytest.approx(expected, abs=0.03)


class Episodes:
    """Steps of several environments, whose episodes end by a goal, a time limit, or a reset that nothing announces.

    Observations and achieved goals are random, so that each tells the step that it is of.
    """

    def __init__(self, environments, size, seed=0):
        self.rng, self.size, self.step = np.random.default_rng(seed), size, 0
        self.states = self.draw(environments, 8)
        self.episode = np.arange(environments)
        self.rows = [{} for _ in range(environments)]  # step: (episode, achieved goal), those that the ring holds

    def draw(self, *shape):
        return self.rng.normal(size=shape).astype(np.float32)

    def add_to(self, *buffers):
        count = len(self.states)
        following, achieved = self.draw(count, 8), self.draw(count, 4)
        end = self.rng.choice(["goal", "limit", "reset", ""], count, p=[0.05, 0.05, 0.05, 0.85])
        infos = [
            {"TimeLimit.truncated": e == "limit", "achieved_goal": a, "desired_goal": np.zeros(4)}
            for e, a in zip(end, achieved, strict=True)
        ]
        for buffer in buffers:
            done = np.isin(end, ["goal", "limit"])
            buffer.add(self.states, following, np.zeros((count, 2)), np.zeros(count), done, infos)
        for number, rows in enumerate(self.rows):
            rows[self.step] = self.episode[number], tuple(achieved[number])
            rows.pop(self.step - self.size, None)
        self.episode = np.where(end != "", self.episode + count, self.episode)
        self.states = np.where((end != "")[:, None], self.draw(count, 8), following)
        self.step += 1

    def pairs(self):
        """Achieved goals of a row and of every later one of its episode."""
        return {
            (a, b)
            for rows in self.rows
            for step, (episode, a) in rows.items()
            for later, (other, b) in rows.items()
            if other == episode and later >= step
        }


def make_random(size, environments):
    return HindsightReplayBuffer(
        size * environments,
        *SPACES,
        n_envs=environments,
        goals=make_goals("state"),
        compute_reward=near,
        goal_speed=100.0,
        relabelled=1.0,
    )


def drawn_pairs(buffer, monkeypatch, samples=20_000):
    """Achieved goals of the rows of a batch, and what their observations are aimed at."""
    pairs = []

    def reward(achieved, desired, info=None):
        pairs.extend(zip(map(tuple, achieved), map(tuple, desired), strict=True))
        return np.zeros(len(achieved))

    monkeypatch.setattr(buffer, "compute_reward", reward)
    buffer.sample(samples)
    return set(pairs)


@pytest.mark.parametrize("environments", [1, 3])
@pytest.mark.parametrize("steps", [1, 15, 19, 20, 21, 33, 90])
def test_goals_are_every_later_one_of_the_same_episode_and_no_other(environments, steps, monkeypatch):
    """In a ring of 20 rows, after it was wrapped too."""
    episodes, buffer = Episodes(environments, size=20), make_random(20, environments)
    for _ in range(steps):
        episodes.add_to(buffer)
    assert drawn_pairs(buffer, monkeypatch) == episodes.pairs()


@pytest.mark.parametrize("size", [20, 31])
@pytest.mark.parametrize("steps", [5, 20, 23, 47])
def test_episodes_go_on_after_the_rows_were_put_back(size, steps, monkeypatch):
    """Into a ring of their size, as when resumed; a larger one may end an episode at its seam, but joins no two."""
    episodes, before, after = Episodes(3, size=20), make_random(20, 3), make_random(size, 3)
    for _ in range(steps):
        episodes.add_to(before)
    after.fill({name: rows.copy() for name, rows in before.filled().items()}, before.pos)
    episodes.size = size
    for _ in range(9):
        drawn = drawn_pairs(after, monkeypatch)
        assert drawn <= episodes.pairs() and {(a, a) for a, _ in episodes.pairs()} <= drawn
        if size == 20 or steps <= 20:
            assert drawn == episodes.pairs()
        episodes.add_to(after)


def test_a_training_that_is_called_again_begins_another_episode(monkeypatch):
    """`learn` resets the environment, and neither row nor `info` says so."""
    config = PretrainConfig(steps=100, learner=GoalLearnerConfig(relabelled=1.0))
    model = make_goal_learner(config, make_play(config))
    model.learn(20).learn(20)
    buffer = model.replay_buffer
    achieved = [tuple(row) for row in buffer.achieved[:40, 0]]
    monkeypatch.setattr(buffer, "goal_speed", 100.0)
    numbers = {(achieved.index(a), achieved.index(b)) for a, b in drawn_pairs(buffer, monkeypatch)}
    assert numbers == {(a, b) for a in range(40) for b in range(a, 20 if a < 20 else 40)}
