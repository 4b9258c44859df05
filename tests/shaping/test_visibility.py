"""Φ where the puck is hidden: the one last seen, and nothing before the first sight."""

import gymnasium
import numpy as np
import pytest

import envs  # noqa: F401 (registers the tasks)
from assets import path as asset
from envs.demonstrations import load_demonstrations
from shaping import Potential, PotentialShaping, ValueEstimator
from tests.shaping.hiding import Height, Hiding, expected_rewards


def play(env, episodes: int) -> list[list[float]]:
    """Return the rewards of episodes."""
    found: list[list[float]] = []
    env.reset(seed=0)
    for _ in range(episodes):
        found.append([])
        over = False
        while not over:
            _, reward, terminated, truncated, info = env.step(env.action_space.sample())
            shaping = Height.gamma * info["next_potential"] - info["potential"]
            assert reward == pytest.approx(info["unshaped_reward"] + shaping)
            found[-1].append(float(reward))
            over = terminated or truncated
        env.reset()
    return found


def test_hidden_frames_repeat_the_potential_last_seen():
    """Against the definition, in episodes of every kind of start and end."""
    task = Hiding()
    rewards = play(PotentialShaping(task, Height()), 300)
    kinds = set()
    for (frames, unshaped), end, found in zip(task.episodes, task.ends, rewards, strict=False):
        np.testing.assert_allclose(found, expected_rewards(frames, unshaped, end), atol=1e-6)
        kinds.add((frames[0] is None, frames[-1] is None, any(frame is not None for frame in frames), end))
    assert len(kinds) == 15, "hidden or not at start and end, never seen, and three ends"


def test_shaped_returns_telescope_from_the_first_sight():
    """Σ γ^t r̄_t = Σ γ^t r_t + γ^T Φ(s_T) − γ^k Φ(s_k), k the first sight; without one nothing is paid."""
    task = Hiding()
    rewards = play(PotentialShaping(task, Height()), 300)
    for (frames, unshaped), end, found in zip(task.episodes, task.ends, rewards, strict=False):
        phi = [None if frame is None else float(1.0 + np.tanh(frame[0])) for frame in frames]
        seen = [step for step, value in enumerate(phi) if value is not None]
        paid = Height.gamma ** np.arange(len(found)) @ (np.array(found) - unshaped)
        if not seen:
            assert paid == pytest.approx(0.0, abs=1e-12)
            continue
        last = {"success": 2.0, "failure": 0.0}.get(end, phi[seen[-1]])
        steps, first = len(found), seen[0]
        expected = Height.gamma**steps * last - Height.gamma**first * phi[first]
        if first == steps:  # the episode ended as it was seen first
            expected = 0.0
        assert paid == pytest.approx(expected, abs=1e-6)


def test_frames_may_be_images():
    """Whole numbers, as any Box may hold."""

    class Images(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (4, 4), np.uint8)
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            return np.full((4, 4), 51, np.uint8), {}

        def step(self, action):
            return np.full((4, 4), 102, np.uint8), 0.0, False, False, {}

    env = PotentialShaping(Images(), lambda images, success: images.mean(axis=(1, 2)) / 255, gamma=0.5)
    assert env.reset()[1]["potential"] == pytest.approx(0.2)
    assert env.step(np.zeros(1))[1] == pytest.approx(0.5 * 0.4 - 0.2)


def test_an_automatic_reset_forgets_what_was_seen():
    task = Hiding()
    env = PotentialShaping(gymnasium.wrappers.Autoreset(task), Height())
    env.reset(seed=0)
    rewards: list[list[float]] = [[]]
    over = False
    while len(rewards) <= 100:
        starts = over
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        over = terminated or truncated
        if starts:
            assert reward == 0.0 and (info["puck_visible"] or info["potential"] == info["next_potential"] == 0.0)
            rewards.append([])
        else:
            rewards[-1].append(float(reward))
    for (frames, unshaped), end, found in zip(task.episodes[:100], task.ends, rewards, strict=False):
        np.testing.assert_allclose(found, expected_rewards(frames, unshaped, end), atol=1e-6)


def test_a_saved_state_continues():
    """To the last bit, from every step of an episode."""
    whole, parts = (PotentialShaping(Hiding(), Height()) for _ in range(2))
    whole.reset(seed=3)
    parts.reset(seed=3)
    for _ in range(200):
        _, reward, terminated, truncated, info = whole.step(np.zeros(1))
        _, again, *_, other = parts.step(np.zeros(1))
        assert reward == again and info == other
        if terminated or truncated:
            whole.reset()
            parts.reset()
        fresh = PotentialShaping(parts.env, Height())
        fresh.set_state(parts.get_state())
        parts = fresh


def test_a_start_at_which_the_camera_does_not_see_the_puck():
    """The end effector is shown in the puck's place, here near the goal, where Φ would be high."""
    estimator = ValueEstimator.load(asset("estimators/push-plane-pointcloud.pt"))
    shown = [t.observations["pointcloud"] for t in load_demonstrations(asset("demonstrations/push-slot-3.hdf5"))]
    potential = Potential(estimator, shown)
    env = PotentialShaping(gymnasium.make("PushSlot-v0", obs="pointcloud", grids=3), potential)
    observation, info = env.reset(seed=1169)
    assert not info["puck_visible"] and float(potential(observation[None])[0]) > 0.8
    assert info["potential"] == 0.0
    sights = []
    while sum(sights) < 2:
        observation, reward, *_, info = env.step(np.array([1.0, 1.0]))
        sights.append(info["puck_visible"])
        if sum(sights) < 2:
            assert reward == 0.0, "neither the frames before the first sight nor the first sight"
    phi = float(potential(observation[None])[0])
    assert sights[:2] == [False, False] and info["next_potential"] == pytest.approx(phi)
    assert reward == pytest.approx(potential.gamma * phi - info["potential"])
    env.close()
