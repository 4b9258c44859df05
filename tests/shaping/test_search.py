"""The pruned search among many demonstrations finds what looking at every goal finds."""

import numpy as np
import pytest
import torch

import assets
from envs.demonstrations import load_demonstrations
from shaping import Potential, ValueEstimator
from shaping.search import AT_ONCE, Search, make_table
from shaping.slopes import Slopes

KINDS = ("state", "pointcloud")


def many(kind: str, count: int, seed: int) -> list[np.ndarray]:
    """Demonstrations side by side: the shipped one, its puck up to 2 cm aside and its end effector up to 10."""
    shown = load_demonstrations(assets.path("demonstrations/push-slot-1.hdf5"), obs=kind)[0].observations[kind]
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        one = shown[rng.integers(16) :].copy()
        goal = slice(4, 6) if kind == "state" else slice(2, 4)
        shape = (len(one), *[1] * (one.ndim - 2), 2)
        one[..., goal] += np.linspace(1.0, 0.0, len(one)).reshape(-1, *[1] * (one.ndim - 1)) * rng.uniform(
            -0.02, 0.02, 2
        )
        one[..., :2] += rng.uniform(-0.1, 0.1, shape)
        made.append(one)
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("combine", "radius"), [("product", 0.08), ("sum", 0.1)])
def test_many_demonstrations_equal_brute_force(kind, combine, radius):
    estimator = ValueEstimator.load(assets.path(f"estimators/push-plane-{kind}.pt"))
    potential = Potential(estimator, many(kind, 40, seed=0), combine=combine, radius=radius)
    assert potential._slopes is not None
    asked = []
    evaluated = potential._evaluated
    potential._evaluated = lambda aimed: asked.append(len(aimed)) or evaluated(aimed)
    seen = np.concatenate(many(kind, 3, seed=1))[::8]
    values = potential(seen)
    few = sum(asked)
    goals = potential.demonstrated
    in_range = 0
    for observation, value in zip(seen, values, strict=True):
        near = np.flatnonzero(potential.goals.displacement(observation[None], goals.goal)[0] <= radius)
        in_range += len(near)
        with torch.no_grad():
            estimate = estimator(torch.from_numpy(observation - goals.shift[near])).clamp(0.0, 1.0).numpy()
        joined = goals.value[near] * estimate if combine == "product" else goals.value[near] + estimate
        assert value == pytest.approx(joined.max(initial=0.0), abs=1e-5)
    assert few < 0.2 * in_range


def test_large_batches_and_many_demonstrations():
    """More states than fit one table, against 100 demonstrations, give what each gives alone."""
    estimator = ValueEstimator.load(assets.path("estimators/push-plane-state.pt"))
    potential = Potential(estimator, many("state", 100, seed=0), radius=0.02)
    seen = np.concatenate(many("state", 2, seed=2))
    seen[::2, 4] += 0.3
    values = potential(seen)
    picked = np.arange(0, len(seen), 37)
    np.testing.assert_allclose(values[picked], [potential(seen[i : i + 1])[0] for i in picked], atol=1e-6)
    assert 0.1 < (values > 0.0).mean() < 0.9


@pytest.mark.parametrize("slope", [20.0, 40.0])
def test_the_best_of_hills(slope):
    """Hills as steep as the slopes say, or less: exact."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        goal = rng.uniform(-0.05, 0.05, (2000, 2)).astype(np.float32)
        worth = np.sort(rng.uniform(0.8, 1.0, 2000).astype(np.float32))[::-1].copy()
        tops = rng.uniform(-0.05, 0.05, (6, 2))
        height = rng.uniform(0.5, 0.9, 6) - 20.0 * np.linalg.norm(goal[:, None] - tops, axis=2)
        value = height.max(axis=1).clip(0.0, 1.0).astype(np.float32)
        slopes = Slopes(np.full(3, slope, np.float32))
        distance = np.linalg.norm(goal, axis=1)
        search = Search(make_table(worth, goal), distance, 1.0, 0.0, lambda v, estimate: v * estimate, slopes)
        while not search.done:
            asked = search.propose()
            assert 0 < len(asked) <= AT_ONCE
            search.learn(value[asked])
        assert search._slopes is not None
        assert search.best == pytest.approx((worth * value).max(), abs=1e-6)
        assert search.chosen == (worth * value).argmax()


def test_slopes_that_are_exceeded_are_not_trusted():
    """Far goals of little worth are shown to be no better than their neighbours, until one of them is."""
    goal = np.stack([np.linspace(-0.005, 0.005, 200), np.zeros(200)], axis=1).astype(np.float32)
    worth = np.linspace(1.0, 0.9, 200).astype(np.float32)
    value = np.full(200, 0.5, np.float32)
    value[150] = 1.0
    distance = np.full(200, 0.05)
    table = make_table(worth, goal)
    search = Search(table, distance, 1.0, 0.0, lambda v, estimate: v * estimate, Slopes(np.full(9, 60.0, np.float32)))
    search.propose()
    search._bound[:], search._asked = 0.6, np.array([150])
    search.learn(value[150:151])
    assert search._slopes is None and (search._bound == 1.0).all() and search.best == pytest.approx(worth[150])
