"""Recorded episodes as rows of a replay buffer, and in files."""

import dataclasses

import numpy as np
import pytest

from agents.prior.config import PretrainConfig
from agents.prior.episodes import (
    Episode,
    achieved_goals,
    check_episodes,
    hindsight_replay,
    load_episodes,
    recorded_episodes,
    save_episodes,
)
from agents.prior.learner import make_goal_learner, make_play
from agents.tasks.actions import to_environment
from envs.demonstrations import Trajectory, save_demonstrations
from shaping import BoxGoals

GOALS = BoxGoals(3, achieved=slice(0, 1), desired=slice(1, 2))


def random_episodes(*lengths):
    """Observations tell which step they are of, in the last column."""
    rng, episodes, first = np.random.default_rng(0), [], 0
    for length in lengths:
        observations = rng.normal(size=(length + 1, 3)).astype(np.float32)
        observations[:, 2] = np.arange(first, first + length + 1)
        first += length + 1
        visible = rng.random(length + 1) < 0.5
        episodes.append(Episode(observations, rng.uniform(-1, 1, (length, 2)).astype(np.float32), visible))
    return episodes


def exactly(achieved, desired, info=None):
    return (achieved == desired).all(axis=1).astype(float)


def same(a, b):
    return len(a) == len(b) and all(
        np.array_equal(x, y) for one, two in zip(a, b, strict=True) for x, y in zip(one, two, strict=True)
    )


def test_rows_are_the_steps_and_goals_are_achieved_later_or_anywhere():
    episodes = random_episodes(1, 7, 3)
    achieved = {step: x for episode in episodes for x, _, step in episode.observations}
    follows = {int(step): float(seen[-1, 2]) for seen, *_ in episodes for step in seen[:-1, 2]}
    for elsewhere in (0.0, 0.5):
        replay = hindsight_replay(episodes, GOALS, exactly, goal_speed=0.0, elsewhere=elsewhere)
        batch = replay.sample(4000)
        before, after = batch.observations.numpy(), batch.next_observations.numpy()
        assert {(a, b) for a, b in zip(before[:, 2], after[:, 2], strict=True)} == {(s, s + 1) for s in follows}
        np.testing.assert_array_equal(before[:, 0], [achieved[step] for step in before[:, 2]])
        aimed = {goal: step for step, goal in achieved.items()}
        aim = np.array([aimed[goal] for goal in before[:, 1]])  # absolute, whichever goal the environment had
        later = (aim > before[:, 2]) & (aim <= [follows[step] for step in before[:, 2]])
        assert later.all() if not elsewhere else 0.5 < later.mean() < 0.8
        assert set(aim) == {step + 1 for step in follows}  # the first state of an episode is achieved by no step
        np.testing.assert_array_equal(batch.rewards[:, 0], aim == after[:, 2])
        np.testing.assert_array_equal(batch.dones, batch.rewards)


def test_episodes_come_back_from_the_buffer_and_from_a_file(tmp_path):
    episodes = check_episodes(random_episodes(4, 1, 2), GOALS)
    found = recorded_episodes(hindsight_replay(episodes, GOALS, exactly, goal_speed=0.0))
    centred = [(GOALS.centred(observations), actions) for observations, actions, _ in episodes]
    assert same([episode[:2] for episode in found], centred)
    save_episodes(tmp_path / "new" / "play.npz", "state", episodes)
    assert same(load_episodes(tmp_path / "new" / "play.npz", "state"), episodes)
    shown = np.zeros((5, 8), np.float32), np.ones((4, 2), np.float32)
    save_demonstrations(tmp_path / "demonstrations.hdf5", [Trajectory({"state": shown[0]}, shown[1])], {})
    assert same([episode[:2] for episode in load_episodes(tmp_path / "demonstrations.hdf5", "state")], [shown])


def test_actions_of_a_file_are_those_of_the_environment(tmp_path):
    """They are rescaled from its bounds to [−1, 1]; beyond these, or of another width, they are refused."""
    low, high = bounds = np.array([-0.5, 0.0]), np.array([0.5, 4.0])
    agents = np.random.default_rng(0).uniform(-1, 1, (6, 2)).astype(np.float32)
    recorded = to_environment(agents, bounds)
    wide = np.array([-100.0, -7.3]), np.array([0.5, 0.1])
    ends = to_environment(np.float32([[-1, 1], [1, -1]]), wide)
    np.testing.assert_array_equal(ends, np.float32([[-100, 0.1], [0.5, -7.3]]))  # rounding does not pass the bounds
    np.testing.assert_allclose(recorded, low + (agents + 1) / 2 * (high - low), atol=1e-6)
    path = tmp_path / "play.npz"
    np.savez(path, state=np.zeros((7, 8)), actions=recorded)
    (episode,) = load_episodes(path, "state", bounds)
    np.testing.assert_allclose(episode.actions, agents, atol=1e-6)
    np.savez(path, state=np.zeros((7, 8)), actions=recorded + high)
    with pytest.raises(ValueError, match=r"actions: row \d is .*, outside \["):
        load_episodes(path, "state", bounds)
    np.savez(path, state=np.zeros((7, 8)), actions=recorded[:, :1])
    with pytest.raises(ValueError, match=r"actions: shape is \(6, 1\), not"):
        load_episodes(path, "state", bounds)


@pytest.mark.parametrize("obs", ["state", pytest.param("pointcloud", marks=pytest.mark.slow)])
def test_the_play_of_a_learner_holds_the_goals_that_its_environment_reported(obs):
    """Position and velocity relative to the goal, for clouds the centroid and its change, follow from what was seen."""
    config = PretrainConfig(obs=obs, steps=120)
    config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, learning_starts=200))
    play = make_play(config)
    model = make_goal_learner(config, play).learn(120)
    buffer, goals = model.replay_buffer, config.goals
    episodes = recorded_episodes(buffer)
    assert sum(len(episode.actions) for episode in episodes) == 120 and len(episodes) >= 3
    found = np.concatenate([achieved_goals(episode, goals, play.metadata["render_fps"])[1:] for episode in episodes])
    np.testing.assert_allclose(found, (buffer.achieved - buffer.desired)[:120, 0], atol=1e-4)


ROWS = {"state": np.zeros((3, 8)), "actions": np.zeros((2, 2))}


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "no such file"),
        (b"nothing", "is neither HDF5 nor NumPy"),
        ({"observations": np.zeros((3, 8))}, "lacks 'state' or its actions; it has observation"),
        ({"state": np.zeros((3, 8))}, "lacks 'state' or its actions; it has state"),
        (ROWS | {"episode_ends": np.array([7])}, "episode_ends"),
    ],
)
def test_a_file_that_holds_no_play_is_named(content, said, tmp_path):
    path = tmp_path / "play.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, **content)
    with pytest.raises(ValueError, match=rf"^{path}: .*{said}") as refused:
        load_episodes(path, "state")
    assert "\n" not in str(refused.value)
