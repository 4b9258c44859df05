"""Batches against brute force."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.replay.shaped import ShapedReplayBuffer
from shaping.wrapper import PotentialShaping

OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
ACTIONS = gym.spaces.Box(-1, 1, (2,), np.float32)


def potential(observations, success):
    return np.where(success, 1.0, observations.reshape(len(observations), -1).sum(1)).astype(np.float32)


def shaped(size=40, phi=potential, **changes):
    buffer = ShapedReplayBuffer(size, OBSERVATIONS, ACTIONS, potential=phi, gamma=0.9, **changes)
    rng = np.random.default_rng(0)
    for step in range(60):
        done, truncated = step % 7 == 6, step % 14 == 13
        rows = rng.normal(size=(2, 1, 8)).astype(np.float32)
        info = [{"TimeLimit.truncated": truncated, "is_success": done and not truncated}]
        buffer.add(rows[0], rows[1], rng.uniform(-1, 1, (1, 2)), np.array([float(done)]), np.array([done]), info)
    return buffer


def expected_rewards(buffer, batch, phi):
    after = phi(batch.next_observations.numpy(), batch.dones.numpy()[:, 0] > 0)
    before = phi(batch.observations.numpy(), np.zeros(len(after), bool))
    stored = {tuple(o[0]): r[0] for o, r in zip(buffer.observations, buffer.rewards, strict=True)}
    task = np.array([stored[tuple(o)] for o in batch.observations.numpy()])
    return task + 0.9 * after - before


def test_rewards_are_shaped_when_sampled_and_time_limits_are_not_terminal():
    buffer = shaped()
    batch = buffer.sample(500)
    np.testing.assert_allclose(batch.rewards[:, 0], expected_rewards(buffer, batch, potential), atol=1e-5)
    assert set(np.unique(buffer.rewards)) == {0.0, 1.0}, "stored rewards are the task's"
    ended = buffer.dones[:, 0] > 0
    assert 0 < (ended & (buffer.timeouts[:, 0] > 0)).sum() < ended.sum()


def test_the_potential_is_evaluated_once_a_step():
    calls = []

    def counted(observations, success):
        calls.append(success.copy())
        return potential(observations, success)

    buffer = ShapedReplayBuffer(4, OBSERVATIONS, ACTIONS, potential=counted, gamma=0.9)
    states = np.random.default_rng(0).normal(size=(9, 1, 8)).astype(np.float32)
    for step in range(8):
        done, info = step == 5, {"is_success": False}
        buffer.add(states[step], states[step + 1], np.zeros((1, 2)), np.zeros(1), np.array([done]), [info])
    assert len(calls) == 8 + 2, "every next state, and the first state of each of the two episodes"
    np.testing.assert_allclose(buffer.potentials[:, 0, 0], potential(buffer.observations[:, 0], np.zeros(4, bool)))


def test_an_episode_that_fails_ends_at_no_potential():
    """As in `PotentialShaping`."""
    buffer = ShapedReplayBuffer(2, OBSERVATIONS, ACTIONS, potential=potential, gamma=0.9)
    rows = np.random.default_rng(0).normal(size=(4, 1, 8)).astype(np.float32)
    infos = {"success": {"is_success": True}, "failure": {"is_success": False}}
    for step, info in enumerate(infos.values()):
        end = np.array([True])
        buffer.add(rows[2 * step], rows[2 * step + 1], np.zeros((1, 2)), np.zeros(1), end, [info])
    assert buffer.potentials[:, 0, 1].tolist() == [1.0, 0.0]


def test_an_end_of_unknown_success_is_an_error_and_nothing_is_stored():
    info = {"success": True, "TimeLimit.truncated": False}
    rows = np.zeros((1, 8), np.float32), np.ones((1, 8), np.float32), np.zeros((1, 2)), np.zeros(1)
    buffer = ShapedReplayBuffer(4, OBSERVATIONS, ACTIONS, potential=potential, gamma=0.9)
    buffer.add(*rows, np.array([False]), [{}])
    buffer.add(*rows, np.array([True]), [{"TimeLimit.truncated": True}])
    with pytest.raises(ValueError, match=r"'is_success'.*'success'.*give success="):
        buffer.add(*rows, np.array([True]), [info])
    assert buffer.size() == 2
    told = ShapedReplayBuffer(4, OBSERVATIONS, ACTIONS, potential=potential, gamma=0.9, success="success")
    told.add(*rows, np.array([True]), [info])
    assert told.potentials[0, 0, 1] == 1.0
    ShapedReplayBuffer(4, OBSERVATIONS, ACTIONS).add(*rows, np.array([True]), [info])  # nothing depends on it


class Track(gym.Env):
    """A point on a line, in its goal set within 0.2 of 0; ends beyond 1, and at 0 unless it goes on there."""

    observation_space, action_space = OBSERVATIONS, ACTIONS

    def __init__(self, goes_on):
        self.goes_on = goes_on

    def _observe(self):
        return np.float32([self.x] + [0] * 7)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.choice([-0.6, 0.6])
        return self._observe(), {}

    def step(self, action):
        self.x += 0.3 * float(action[0])
        won, lost = bool(abs(self.x) < 0.2), bool(abs(self.x) > 1.0)
        return self._observe(), float(won), lost or (won and not self.goes_on), False, {"won": won}


@pytest.mark.parametrize("goes_on", [False, True])
def test_rewards_are_those_of_the_wrapper_in_every_environment(goes_on):
    """Two environments, which reach and leave the goal set, end and begin at different times."""

    def make():
        return gym.wrappers.TimeLimit(Track(goes_on), 25)

    settings = {"potential": potential, "gamma": 0.9, "success": "won"}
    model = SAC(
        "MlpPolicy",
        DummyVecEnv([make, make]),
        buffer_size=600,
        learning_starts=1000,
        replay_buffer_class=ShapedReplayBuffer,
        replay_buffer_kwargs=settings,
        seed=0,
    ).learn(600)
    buffer = model.replay_buffer
    assert 10 < buffer.successes.sum() < 500 and (buffer.dones * (1 - buffer.timeouts)).sum() > 4
    rows = np.arange(300)
    for number in range(2):
        env = PotentialShaping(make(), **settings)
        env.reset(seed=number)
        expected = []
        for action in buffer.actions[:, number]:
            _, reward, terminated, truncated, _ = env.step(action)
            expected.append(reward)
            if terminated or truncated:
                env.reset()
        got = buffer._batch(rows, np.full(300, number)).rewards[:, 0]
        np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("own, given, right", [(0.5, None, 0.5), (0.5, 0.9, 0.9), (None, None, 0.99)])
def test_the_discount_of_the_shaping_is_the_potential_s_unless_it_is_given(own, given, right):
    def height(observations, success):
        return observations[:, 0]

    if own is not None:
        height.gamma = own
    buffer = ShapedReplayBuffer(5, OBSERVATIONS, ACTIONS, potential=height, gamma=given)
    here, there = np.full((1, 8), 0.25, np.float32), np.full((1, 8), 0.75, np.float32)
    buffer.add(here, there, np.zeros((1, 2)), np.array([2.0]), np.array([False]), [{}])
    assert buffer.sample(1).rewards.item() == pytest.approx(2.0 + right * 0.75 - 0.25)


def test_a_constant_on_the_potential_changes_non_terminal_rewards_by_gamma_minus_one_times_it():
    plain, raised = shaped(), shaped(phi=lambda o, s: potential(o, s) + 3)
    raised.rng, plain.rng = np.random.default_rng(1), np.random.default_rng(1)
    a, b = plain.sample(300), raised.sample(300)
    np.testing.assert_allclose((b.rewards - a.rewards)[a.dones == 0], (0.9 - 1) * 3, atol=1e-5)


def test_demonstrations_take_their_share_of_every_batch():
    buffer, demonstrations = shaped(), shaped(size=10)
    buffer.set_demonstrations(demonstrations, 0.1)
    shown = {tuple(row) for row in demonstrations.observations[:, 0]}
    own = {tuple(row) for row in buffer.observations[:30, 0]}
    batch = buffer.sample(500)
    rows = [tuple(row) for row in batch.observations.numpy()]
    assert sum(row in shown for row in rows[-50:]) == 50
    assert sum(row in own for row in rows) > 0
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        buffer.set_demonstrations(demonstrations, 1.0)


def test_reward_scale_multiplies_the_whole_reward():
    a, b = shaped(), shaped(reward_scale=10.0)
    np.testing.assert_allclose(10 * a.sample(50).rewards, b.sample(50).rewards, rtol=1e-5)


@pytest.mark.parametrize("flag", [True, 1, 1.0, np.float32(1), np.True_])
def test_a_time_limit_is_one_as_whatever_number_it_is_given(flag):
    buffer = ShapedReplayBuffer(3, OBSERVATIONS, ACTIONS, potential=potential, gamma=0.9)
    rows = np.ones((2, 1, 8), np.float32)
    end = np.array([True])
    info = {"TimeLimit.truncated": flag}
    buffer.add(rows[0], rows[1], np.zeros((1, 2)), np.zeros(1), end, [info])
    batch = buffer.sample(4)
    assert (batch.dones == 0).all()
    assert batch.rewards == pytest.approx(0.9 * 8 - 8), "Φ(s′) is that of any state"


def test_a_time_limit_from_which_no_learner_bootstraps_is_an_end():
    buffer = ShapedReplayBuffer(
        3, OBSERVATIONS, ACTIONS, potential=potential, gamma=0.9, handle_timeout_termination=False
    )
    rows = np.ones((2, 1, 8), np.float32)
    info = {"TimeLimit.truncated": True}
    buffer.add(rows[0], rows[1], np.zeros((1, 2)), np.zeros(1), np.array([True]), [info])
    batch = buffer.sample(4)
    assert (batch.dones == 1).all() and (batch.rewards == -8).all()


def test_observations_that_are_numbers_have_a_potential():
    def column(observations, success):
        return observations[:, 0].astype(np.float32)

    buffer = ShapedReplayBuffer(5, gym.spaces.Discrete(9), ACTIONS, n_envs=2, potential=column)
    for step in range(2):
        done = np.zeros(2, bool)
        buffer.add(np.array([step, 4]), np.array([step + 1, 4]), np.zeros((2, 2)), np.zeros(2), done, [{}, {}])
    assert buffer.potentials[:2, 0].tolist() == [[0, 1], [1, 2]]


def test_demonstrations_are_where_the_rest_of_the_buffer_is():
    """Stable-Baselines3 sets the device of a replay buffer that it has loaded."""
    buffer = shaped()
    buffer.set_demonstrations(shaped(size=10), 0.1)
    buffer.device = torch.device("meta")
    assert buffer.sample(20).observations.device.type == "meta"


def test_rows_survive_a_checkpoint():
    buffer, other = shaped(), shaped()
    other.fill({k: v.copy() for k, v in buffer.filled().items()}, buffer.pos)
    other.rng.bit_generator.state = buffer.rng.bit_generator.state
    for a, b in zip(buffer.sample(64)[:5], other.sample(64)[:5], strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="do not fit"):
        other.fill({"rewards": np.zeros((3, 1))}, 3)
