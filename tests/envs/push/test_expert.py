"""The expert solves the task from everywhere, slowly, and its free motions touch nothing."""

import numpy as np
import pytest

from envs.push.env import PushEnv
from envs.push.expert import CONTACT, Expert, _boxes, shortest_way
from envs.push.geometry import GRIDS, SLOT
from envs.record import demonstrate

WALLS = _boxes(SLOT)


@pytest.fixture(scope="module")
def env():
    return PushEnv("push-slot", grids=3, success_speed=0.02)


@pytest.mark.parametrize("grid", range(len(GRIDS)))
def test_succeeds_slowly_from_each_grid(env, grid):
    for seed in range(100, 104):
        trajectory = demonstrate(env, grid, seed)
        assert trajectory is not None, f"seed {seed}"
        assert 90 <= trajectory.horizon <= env.horizon
        assert trajectory.grid == grid and trajectory.seed == seed
        # the goal set is entered by the last step only, and the puck lies still in it
        distance = np.linalg.norm(trajectory.observations["state"][:, 4:6], axis=1)
        speed = np.linalg.norm(trajectory.observations["state"][:, 6:8], axis=1)
        success = (distance < 0.02) & (speed < 0.02)
        assert success[-1] and not success[:-1].any()
        assert speed.max() < 0.5  # gently


def test_demonstrates_the_plane_task():
    env = PushEnv("push-plane")
    assert sum(demonstrate(env, seed=seed) is not None for seed in range(5)) >= 3


def test_same_start_same_demonstration(env):
    first, second = (demonstrate(env, 0, 11) for _ in range(2))
    np.testing.assert_array_equal(first.actions, second.actions)
    np.testing.assert_array_equal(first.observations["state"], second.observations["state"])


def test_actions_are_bounded_everywhere():
    rng = np.random.default_rng(0)
    for _ in range(100):
        puck, tip = rng.uniform(-0.25, 0.25, (2, 2))
        for expert in (Expert(puck), Expert(puck, goal=np.array([0.1, 0.1]))):
            action = expert.act(puck, tip)
            assert np.all(np.abs(action) <= 1.0)  # NaN would fail too


def test_waits_when_the_puck_is_home():
    expert = Expert(np.array([0.005, 0.0]), goal=np.zeros(2))
    np.testing.assert_array_equal(expert.act(np.array([0.005, 0.0]), np.array([0.06, 0.0])), 0.0)


def test_ways_lead_to_the_target_and_touch_nothing():
    """Followed in small steps, also out of the slot and from behind the puck."""
    rng = np.random.default_rng(1)
    reached = 0
    for _ in range(40):
        puck = GRIDS[rng.integers(len(GRIDS))] + rng.uniform(-0.03, 0.03, 2)
        angle = rng.uniform(-np.pi, np.pi)
        target = puck + (CONTACT + 0.01) * np.array([np.cos(angle), np.sin(angle)])
        tip = np.zeros(2) if rng.random() < 0.3 else rng.uniform([-0.22, -0.32], [0.22, 0.32])
        if np.linalg.norm(tip - puck) < CONTACT + 0.012 or box_distance(tip) < 0.02 or box_distance(target) < 0.02:
            continue
        for _ in range(300):
            step = shortest_way(tip, target, puck, WALLS) - tip
            tip = tip + step * min(1.0, 0.01 / max(np.linalg.norm(step), 1e-12))
            assert np.linalg.norm(tip - puck) > CONTACT
            assert box_distance(tip) > 0.01
            if np.linalg.norm(tip - target) < 1e-6:
                reached += 1
                break
        else:
            pytest.fail(f"never at {target} with the puck at {puck}")
    assert reached > 20


def box_distance(point):
    return min(np.linalg.norm(np.maximum(np.maximum(low - point, point - high), 0.0)) for low, high in WALLS)
