"""Learners whose puck is hidden in some frames: rewards, the guide, and going on from a checkpoint."""

import gymnasium
import numpy as np
import pytest
import stable_baselines3
import torch
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import envs  # noqa: F401 (registers the tasks)
from agents.collecting.collector import Collector
from agents.replay.shaped import ShapedReplayBuffer
from agents.runs.checkpoint import load_checkpoint, save_checkpoint
from agents.sac.algorithm import SAC
from agents.sac.guide import Guide
from assets import path as asset
from envs.demonstrations import load_demonstrations
from shaping import Potential, ValueEstimator
from tests.shaping.hiding import Height, Hiding, expected_rewards


def make_agent(algorithm, env, potential=None, **changes):
    settings = {
        "replay_buffer_class": ShapedReplayBuffer,
        "replay_buffer_kwargs": {"potential": potential or Height(), "gamma": Height.gamma},
        "learning_starts": 10_000,
        "buffer_size": 4000,
        "policy_kwargs": {"net_arch": [8]},
        "seed": 0,
        "device": "cpu",
    }
    return algorithm("MlpPolicy", env, **settings | changes)


def rewards_of(buffer: ShapedReplayBuffer, env: int) -> np.ndarray:
    """Composed rewards of all rows of an environment, oldest first."""
    rows = np.roll(np.arange(buffer.size()), -buffer.pos if buffer.full else 0)
    return buffer._batch(rows, np.full_like(rows, env)).rewards[:, 0].numpy()


def expected_of(task: Hiding) -> np.ndarray:
    episodes = zip(task.episodes, task.ends, strict=True)
    return np.concatenate([expected_rewards(frames, rewards, end) for (frames, rewards), end in episodes if rewards])


@pytest.mark.parametrize(
    ("algorithm", "repeats"),
    [(SAC, False), (SAC, True), (stable_baselines3.SAC, True), (stable_baselines3.TD3, True)],
    ids=["ours", "ours, told twice", "stock SAC", "stock TD3"],
)
def test_rewards_in_several_environments_are_those_of_the_definition(algorithm, repeats):
    """Episodes end at different steps, and a second `learn` begins with new ones in the middle of the old."""
    tasks = [Hiding(repeats) for _ in range(3)]
    env = VecMonitor(DummyVecEnv([lambda task=task: task for task in tasks]))
    model = make_agent(algorithm, env)
    model.learn(600)
    model.learn(600)
    for index, task in enumerate(tasks):
        found = rewards_of(model.replay_buffer, index)
        assert len(found) == 400 and len(task.episodes) > 40
        np.testing.assert_allclose(found, expected_of(task), atol=1e-5)


def test_what_a_collector_stores_of_several_environments_is_that_of_the_definition():
    tasks = [Hiding() for _ in range(2)]
    model = make_agent(SAC, DummyVecEnv([lambda task=task: Monitor(task) for task in tasks]), buffer_size=600)
    kinds = {"n_envs": 2, "device": "cpu", "potential": Height(), "gamma": Height.gamma}
    recorder = ShapedReplayBuffer(4, model.observation_space, model.action_space, **kinds)
    for task in tasks:
        task.episodes, task.ends = [], []  # those of the model's own start
    collector = Collector(model, recorder, seed=0)
    for _ in range(3):
        for step in collector.collect(None, 100)[0]:
            model.replay_buffer.put(step.row)
    for index, task in enumerate(tasks):
        found = rewards_of(model.replay_buffer, index)
        assert len(found) == 300 and len(task.episodes) > 30
        np.testing.assert_allclose(found, expected_of(task), atol=1e-5)


def test_returns_of_several_steps_end_with_the_episode_of_their_own_environment():
    """Also where a hidden end and a hidden start look the same, and at the newest row."""
    tasks = [Hiding() for _ in range(3)]
    model = make_agent(SAC, DummyVecEnv([lambda task=task: task for task in tasks]), buffer_size=450)
    model.learn(600)
    buffer, discount = model.replay_buffer, 0.8
    single = [rewards_of(buffer, index) for index in range(3)]
    buffer.n_steps, buffer.discount = 3, discount
    rows = np.roll(np.arange(150), -buffer.pos)
    for index, task in enumerate(tasks):
        batch = buffer._batch(rows, np.full(150, index))
        lengths = [len(rewards) for _, rewards in task.episodes]
        left = np.concatenate([np.arange(length, 0, -1) for length in lengths])[-150:].clip(max=3)
        padded = np.append(single[index], np.zeros(2, np.float32))
        expected = [padded[i : i + n] @ discount ** np.arange(n) for i, n in enumerate(left)]
        np.testing.assert_allclose(batch.rewards[:, 0], expected, atol=1e-5)
        np.testing.assert_allclose(batch.discounts[:, 0], discount**left, atol=1e-6)


def test_a_ring_that_wraps():
    task = Hiding()
    model = make_agent(SAC, task, buffer_size=97)
    model.learn(500)
    buffer = model.replay_buffer
    expected = expected_of(task)[-97:]
    np.testing.assert_allclose(rewards_of(buffer, 0), expected, atol=1e-5)


def test_a_checkpoint_in_the_middle_of_hidden_frames_continues(tmp_path):
    """At each of 25 steps, to the last bit."""
    whole, task = make_agent(SAC, Monitor(Hiding()), learning_starts=0, batch_size=8), Hiding()
    whole.learn(80)
    parts = make_agent(SAC, Monitor(task), learning_starts=0, batch_size=8)
    parts.learn(55)
    hidden = []
    for _ in range(25):
        checkpoint = save_checkpoint(parts, tmp_path)
        hidden.append(not parts._last_visible[0])
        parts = make_agent(SAC, Monitor(Hiding()), learning_starts=0, batch_size=8)
        load_checkpoint(parts, checkpoint)
        parts.learn(1, reset_num_timesteps=False)
    assert 5 < sum(hidden) < 20
    for name in ("observations", "rewards", "potentials", "sight"):
        np.testing.assert_array_equal(getattr(parts.replay_buffer, name), getattr(whole.replay_buffer, name), name)
    for a, b in zip(parts.policy.parameters(), whole.policy.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_guide_does_not_act_where_the_puck_is_hidden():
    """In the real task, at a start where the camera does not see the puck and a demonstration is in range."""
    estimator = ValueEstimator.load(asset("estimators/push-plane-pointcloud.pt"))
    shown = [t.observations["pointcloud"] for t in load_demonstrations(asset("demonstrations/push-slot-3.hdf5"))]
    potential = Potential(estimator, shown)
    env = DummyVecEnv([lambda: gymnasium.make("PushSlot-v0", obs="pointcloud", grids=3)])
    model = make_agent(SAC, env, potential)
    model.guide = Guide(potential, estimator, share=1.0, noise=0.0, seed=0)
    env.seed(1169)
    model.learn(12)
    buffer = model.replay_buffer
    aimed, in_range = potential.goal(buffer.observations[:12, 0])
    with torch.inference_mode():
        proposed = estimator.act(torch.from_numpy(aimed)).numpy()
    guided = np.abs(buffer.actions[:12, 0] - proposed).max(axis=1) < 1e-6
    assert in_range[0] and not guided[0] and guided.any()
    seen = int(np.flatnonzero(guided)[0])
    phi = potential(buffer.observations[:12, 0])
    assert buffer.potentials[0, 0].max() == 0.0 or seen == 1
    np.testing.assert_array_equal(rewards_of(buffer, 0)[:seen], buffer.rewards[:seen, 0])
    np.testing.assert_allclose(buffer.potentials[seen, 0, 0], phi[seen], atol=1e-6)
    env.close()
