"""A buffer that stores an observation once, against arrays that hold observation and next observation of every row."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import ReplayBuffer

from agents.replay.buffer import StoredReplayBuffer
from agents.replay.hindsight import HindsightReplayBuffer
from agents.replay.shaped import ShapedReplayBuffer
from shaping.goals import make_goals
from shaping.reward import shaped_reward

SIZE = 23
SPACES = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32)
GOALS = {"goals": make_goals("state"), "compute_reward": lambda a, b, info: (np.abs(a - b).max(-1) < 1).astype(float)}


def potential(observations, success):
    return np.where(success, 1.0, np.sin(observations[:, 0])).astype(np.float32)


def encode(observations):
    return observations[:, :3].cos()


def walk(environments, steps, seed=0):
    """Take steps with episodes ended by goals, by time limits, and by a reset that nothing announces."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(environments, 8)).astype(np.float32)
    for _ in range(steps):
        following = rng.normal(size=(environments, 8)).astype(np.float32)
        end = rng.choice(["goal", "limit", "reset", ""], environments, p=[0.06, 0.06, 0.03, 0.85])
        goals = {name: rng.normal(size=(environments, 4)) for name in ("achieved_goal", "desired_goal")}
        infos = [
            {"TimeLimit.truncated": end[env] == "limit", "is_success": end[env] == "goal"}
            | {name: goal[env] for name, goal in goals.items()}
            for env in range(environments)
        ]
        done = np.isin(end, ["goal", "limit"])
        yield states, following, rng.uniform(-1, 1, (environments, 2)), rng.normal(size=environments), done, infos
        starts = rng.normal(size=(environments, 8)).astype(np.float32)
        states = np.where((end != "")[:, None], starts, following)


class Reference:
    """The rows of a ring, each with all that belongs to it."""

    def __init__(self, size=SIZE):
        self.rows, self.position = [None] * size, 0

    def add(self, states, following, actions, rewards, dones, infos):
        self.rows[self.position % len(self.rows)] = [
            {
                "observations": states[env],
                "next_observations": following[env],
                "actions": actions[env].astype(np.float32),
                "dones": np.float32([dones[env] and not infos[env]["TimeLimit.truncated"]]),
                "rewards": np.float32(rewards[env]),
                "features": encode(torch.from_numpy(states[env : env + 1]))[0].numpy(),
                "next_features": encode(torch.from_numpy(following[env : env + 1]))[0].numpy(),
            }
            for env in range(len(states))
        ]
        self.position += 1

    def batch(self, rows, envs):
        picked = [self.rows[row][env] for row, env in zip(rows, envs, strict=True)]
        batch = {name: np.stack([p[name] for p in picked]) for name in picked[0]}
        before = potential(batch["observations"], np.zeros(len(rows), bool))
        after = potential(batch["next_observations"], batch["dones"][:, 0] > 0)
        batch["rewards"] = shaped_reward(batch["rewards"], before, after, 0.9)[:, None]
        return batch


def make_shaped(environments=1, size=SIZE):
    buffer = ShapedReplayBuffer(size * environments, *SPACES, n_envs=environments, potential=potential, gamma=0.9)
    buffer.store_features(encode, 3)
    return buffer


def assert_same_batch(buffer, reference):
    state = buffer.rng.bit_generator.state
    drawn = buffer._draw(200)
    buffer.rng.bit_generator.state = state
    batch = buffer.sample(200)._asdict()
    for name, expected in reference.batch(*drawn).items():
        assert batch[name].numpy().tobytes() == np.ascontiguousarray(expected).tobytes(), name


@pytest.mark.parametrize("environments", [1, 3])
@pytest.mark.parametrize("size", [1, 2, SIZE])
def test_batches_are_those_of_arrays_that_store_both_in_a_ring_wrapped_often(environments, size):
    buffer, reference = make_shaped(environments, size), Reference(size)
    for transition in walk(environments, 5 * SIZE):
        buffer.add(*transition)
        reference.add(*transition)
        assert_same_batch(buffer, reference)
    assert 2 <= len(buffer.next_observations.kept) <= 2 * (size + 1), "places are used again"


@pytest.mark.parametrize("steps", range(SIZE - 2, 3 * SIZE, 5))
def test_a_resumed_buffer_goes_on_like_the_one_that_was_saved(steps):
    buffer, reference = make_shaped(), Reference()
    for number, transition in enumerate(walk(1, 5 * SIZE)):
        buffer.add(*transition)
        reference.add(*transition)
        if number == steps:
            resumed = make_shaped()
            resumed.fill({name: rows.copy() for name, rows in buffer.filled().items()}, buffer.pos)
        if number >= steps:
            if number > steps:
                resumed.add(*transition)
            for name, rows in buffer.filled().items():
                np.testing.assert_array_equal(resumed.filled()[name], rows, name)
            assert_same_batch(resumed, reference)


@pytest.mark.parametrize("steps", [10, SIZE, SIZE + 10, 2 * SIZE])
def test_a_ring_put_into_a_larger_one_keeps_what_followed_its_last_row(steps):
    buffer, reference = make_shaped(), Reference()
    transitions = list(walk(1, 4 * SIZE))
    for transition in transitions[:steps]:
        buffer.add(*transition)
        reference.add(*transition)
    larger = make_shaped(size=2 * SIZE)
    larger.fill(buffer.filled(), buffer.pos)
    reference.rows = [row for row in reference.rows if row] + [None] * (2 * SIZE - buffer.size())
    reference.position = buffer.size()
    for transition in transitions[steps:]:
        assert_same_batch(larger, reference)
        larger.add(*transition)
        reference.add(*transition)


def test_hindsight_shifts_what_follows_as_it_shifts_the_observation():
    buffer, reference = HindsightReplayBuffer(SIZE, *SPACES, **GOALS, goal_speed=1.0), Reference()
    for transition in walk(1, 3 * SIZE):
        buffer.add(*transition)
        reference.add(*transition)
        batch = buffer.sample(100)
        untouched = {row[0]["observations"][:4].tobytes(): row[0] for row in reference.rows if row}
        for observation, following in zip(batch.observations.numpy(), batch.next_observations.numpy(), strict=True):
            row = untouched[observation[:4].tobytes()]
            assert following[:4].tobytes() == row["next_observations"][:4].tobytes()
            shift = following - row["next_observations"]
            np.testing.assert_allclose(shift, observation - row["observations"], atol=1e-5)


def test_stable_baselines_own_sampling_reads_it_too():
    ours, stock = (kind(SIZE, *SPACES) for kind in (StoredReplayBuffer, ReplayBuffer))
    for transition in walk(1, 3 * SIZE):
        for buffer in (ours, stock):
            buffer.add(*transition)
    rows = np.arange(SIZE)
    for a, b in zip(ours._get_samples(rows), stock._get_samples(rows), strict=True):
        assert a is b is None or torch.equal(a, b)


def test_what_does_not_fit_is_refused():
    buffer = make_shaped()
    for transition in walk(1, 15):
        buffer.add(*transition)
    rows = buffer.filled()
    for name in ("next_observations", "next_observations_apart", "next_features"):
        for wrong in ({**rows, name: rows[name][1:]}, {k: v for k, v in rows.items() if k != name}):
            with pytest.raises(ValueError, match="do not fit the replay buffer"):
                make_shaped().fill(wrong, 15)
