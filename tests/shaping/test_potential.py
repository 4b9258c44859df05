"""Φ against its definition in loops, and what must hold whatever the estimator says."""

from itertools import product

import numpy as np
import pytest
import torch

import assets
from shaping import Potential, ValueEstimator, make_goals, shaped_reward

GAMMA = 0.99
KINDS = {"state": "state", "pointcloud": "pointnet"}
SUM_AND_PRODUCT = pytest.mark.parametrize("combine", ["sum", "product"])


def make_estimator(kind: str) -> ValueEstimator:
    """Return an estimator with untrained but lively values, some of them outside [0, 1]."""
    torch.manual_seed(0)
    estimator = ValueEstimator(kind, KINDS[kind], {}, hidden=(32, 32)).eval()
    with torch.no_grad():
        estimator.value[-1].weight *= 8.0
        seen = torch.from_numpy(observe(kind, walk(200)))
        estimator.value[-1].bias += 0.6 - estimator.raw_value(seen).mean()
    return estimator


def walk(count: int, seed: int = 0) -> np.ndarray:
    """Return puck positions relative to the goal (count, 2) along a path that ends there [m]."""
    noise = np.random.default_rng(seed).normal(0.0, 0.004, (count, 2))
    angle = np.linspace(0.0, 3.0, count)[::-1, None]
    return np.concatenate([0.1 * np.sin(angle), 0.08 * angle], axis=1) + noise


def observe(kind: str, positions: np.ndarray, seed: int = 0) -> np.ndarray:
    rng, count = np.random.default_rng(seed), len(positions)
    if kind == "state":
        arm, velocity = rng.normal(0.0, 0.1, (count, 4)), rng.normal(0.0, 0.08, (count, 2))
        return np.concatenate([arm, positions, velocity], axis=1).astype(np.float32)
    puck = rng.uniform(-0.03, 0.03, (count, 20, 2))
    arm = rng.normal(0.0, 0.1, (count, 1, 2))
    return np.concatenate([puck + arm, puck + positions[:, None]], axis=2).astype(np.float32)


def demonstrations(kind: str) -> list[np.ndarray]:
    """Return three of different lengths, one of them of one step."""
    return [observe(kind, walk(count, seed=count)[-count:], seed=count) for count in (40, 2, 25)]


def definition(estimator, shown, observation, *, combine, radius, beta) -> tuple[float, tuple[int, int] | None]:
    """Return Φ and (j, t) as the paper writes them."""
    goals, best, chosen = estimator.goals, 0.0, None
    for j, demonstration in enumerate(shown):
        for t in range(len(demonstration)):
            if goals.name == "state":
                mine, goal = observation[4:6], demonstration[t, 4:8].copy()
                goal[2:] = np.minimum(np.maximum(goal[2:], -0.05), 0.05)
                aimed = observation.copy()
                aimed[4:8] -= goal
            else:
                mine, goal = observation[:, 2:].mean(axis=0), demonstration[t, :, 2:].mean(axis=0)
                aimed = observation.copy()
                aimed[:, 2:] -= goal
            with torch.no_grad():
                value = min(max(float(estimator(torch.from_numpy(aimed[None]))), 0.0), 1.0)
            if np.linalg.norm(mine - goal[:2]) > radius or value < beta:
                continue
            worth = GAMMA ** (len(demonstration) - 1 - t)
            estimate = worth + value if combine == "sum" else worth * value
            if chosen is None or estimate > best:
                best, chosen = estimate, (j, t)
    return best, chosen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("combine", "radius", "beta"), [*product(["sum", "product"], [0.03, 1.0], [0.0, 0.6])])
def test_potential_is_its_definition(kind, combine, radius, beta):
    estimator, shown = make_estimator(kind), demonstrations(kind)
    settings = {"combine": combine, "radius": radius, "beta": beta}
    potential = Potential(estimator, shown, gamma=GAMMA, spacing=0.0, **settings)
    positions = walk(12, seed=5) + np.random.default_rng(5).normal(0.0, 0.02, (12, 2))
    seen = observe(kind, positions, seed=5)
    success = np.arange(12) % 6 == 5
    expected = [definition(estimator, shown, observation, **settings) for observation in seen]
    values = np.where(success, 1.0, [value for value, _ in expected])
    result = potential(seen, success)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, values, atol=1e-5)
    aimed, valid = potential.goal(seen)
    ends = 0
    for i, (value, chosen) in enumerate(expected):
        explained = potential.explain(seen[i])
        assert explained["potential"] == pytest.approx(value, abs=1e-5)
        assert valid[i] == (chosen is not None) == (explained["chosen"] is not None)
        if chosen is None:
            np.testing.assert_array_equal(aimed[i], seen[i])
            continue
        j, t = explained["chosen"]
        assert explained["in_range"][j][t]
        worth, estimate = explained["V_d"][j][t], explained["V_g"][j][t]
        assert worth == pytest.approx(GAMMA ** (len(shown[j]) - 1 - t))
        assert (worth + estimate if combine == "sum" else worth * estimate) == pytest.approx(value, abs=1e-5)
        goal = estimator.goals.clip(estimator.goals.extract(shown[j][t]))
        last = t == len(shown[j]) - 1  # in the goal set, where the task's own goal is known
        np.testing.assert_allclose(aimed[i], seen[i] - (0.0 if last else estimator.goals.shift(goal)), atol=1e-6)
        ends += last
    assert ends or radius < 1.0, "no case in which the last goal is chosen"


@pytest.mark.parametrize("kind", KINDS)
def test_the_cases_above_are_not_all_alike(kind):
    """Empty and non-empty Δ, values clipped at both ends, and more than one demonstration chosen."""
    estimator, shown = make_estimator(kind), demonstrations(kind)
    potential = Potential(estimator, shown, radius=0.03, combine="sum")
    seen = observe(kind, walk(60, seed=5) + np.random.default_rng(5).normal(0.0, 0.02, (60, 2)), seed=5)
    explained = [potential.explain(observation) for observation in seen]
    chosen = [parts["chosen"] for parts in explained]
    assert None in chosen and len({j for j, _ in filter(None, chosen)}) >= 2
    value = np.concatenate([np.concatenate(parts["V_g"]) for parts in explained])
    assert value.min() == 0.0 and value.max() == 1.0 and ((value > 0.0) & (value < 1.0)).mean() > 0.2


def test_large_batches_and_many_demonstrations():
    """More states than fit one table, against 100 demonstrations, give what each gives alone."""
    shown = [observe("state", walk(20, seed=seed), seed=seed) for seed in range(100)]
    potential = Potential(make_estimator("state"), shown, radius=0.02, spacing=0.0)
    seen = observe("state", np.random.default_rng(0).uniform(-0.05, 0.25, (1200, 2)))
    values = potential(seen)
    picked = np.arange(0, 1200, 37)
    np.testing.assert_allclose(values[picked], [potential(seen[i : i + 1])[0] for i in picked], atol=1e-6)
    assert 0.1 < (values > 0.0).mean() < 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_close_goals_are_taken_from_the_demonstration_worth_most_there(kind):
    shown = [observe(kind, walk(60, seed=seed), seed=seed) for seed in range(20)]
    demonstrated = Potential(make_estimator(kind), shown).demonstrated
    kept, spacing = demonstrated.in_order(0.01), 0.01
    assert 60 < len(kept) < 600 and (np.diff(demonstrated.value[kept]) <= 0).all()
    located = [demonstrated.locate(index)[0] for index in range(len(demonstrated))]
    for index in set(range(len(demonstrated))) - set(kept):
        apart = np.abs(demonstrated.goal[kept] - demonstrated.goal[index])
        close = (apart[:, :2] < spacing).all(axis=1) & (apart[:, 2:] < 10 * spacing).all(axis=1)
        better = demonstrated.value[kept] >= demonstrated.value[index]
        other = np.array([located[k] != located[index] for k in kept])
        assert (close & better & other).any()


@pytest.mark.parametrize("kind", KINDS)
def test_one_demonstration_keeps_all_its_goals(kind):
    demonstrated = Potential(make_estimator(kind), [observe(kind, walk(125))]).demonstrated
    np.testing.assert_array_equal(np.sort(demonstrated.in_order(0.1)), np.arange(125))


@SUM_AND_PRODUCT
@pytest.mark.parametrize("kind", KINDS)
def test_leaving_out_close_goals_costs_a_fraction_of_a_step(kind, combine):
    """With the shipped estimator and a hundred demonstrations of one way."""
    estimator = ValueEstimator.load(assets.path(f"estimators/push-plane-{kind}.pt"))
    shown = [observe(kind, walk(100, seed=seed), seed=seed) for seed in range(100)]
    seen = observe(kind, walk(100, seed=200), seed=200)
    every, fewer = (Potential(estimator, shown, combine=combine, spacing=spacing)(seen) for spacing in (0.0, 0.005))
    assert (fewer <= every + 1e-6).all() and (fewer < every).any()
    assert (every - fewer).mean() < 0.5 * (1 - GAMMA)
    assert (every - fewer).max() < 3 * (1 - GAMMA)


class Recording:
    """An estimator that says the same everywhere, and counts what it is asked."""

    def __init__(self, value: float, kind: str = "state"):
        self.value, self.goals, self.asked = value, make_goals(kind), []

    def __call__(self, observation):
        assert torch.is_inference_mode_enabled() and observation.dtype == torch.float32
        self.asked.append(observation)
        return torch.full((len(observation),), self.value)


@SUM_AND_PRODUCT
def test_the_network_sees_only_goals_in_range(combine):
    estimator = Recording(0.5)
    shown = [observe("state", walk(125))]
    potential = Potential(estimator, shown, radius=0.05, combine=combine)
    seen = shown[0][60:61]
    potential(seen)
    distance = torch.linalg.norm(torch.cat(estimator.asked)[:, 4:6], dim=1)
    near = (estimator.goals.distance(seen, potential.demonstrated.goal) <= 0.05).sum()
    assert 0 < len(distance) <= near < 125 and distance.max() <= 0.05 + 1e-6
    estimator.asked.clear()
    potential(observe("state", np.full((3, 2), 5.0)))
    assert not estimator.asked, "nothing in range, no call"


def test_each_demonstration_has_its_own_length():
    """At its own last state a demonstration is worth 1, however short or long it is."""
    shown = [observe("state", walk(count)) for count in (1, 2, 30, 200)]
    potential = Potential(Recording(1.0), shown, gamma=0.9)
    for j, worth in enumerate(potential.explain(shown[0][0])["V_d"]):
        np.testing.assert_allclose(worth, 0.9 ** np.arange(len(shown[j]))[::-1], rtol=1e-5)


def grid(spacing: float = 0.01) -> np.ndarray:
    """Return states all over the table, in range of a demonstration that ends in the goal or not."""
    axis = np.arange(-0.2, 0.3, spacing)
    return observe("state", np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2))


@SUM_AND_PRODUCT
@pytest.mark.parametrize("value", [1.0, 5.0])
def test_entering_the_goal_beats_every_other_step(combine, value):
    """From wherever it is possible, even where the estimator promises everything."""
    potential = Potential(Recording(value), [observe("state", walk(50))], gamma=GAMMA, combine=combine)
    seen = grid()
    elsewhere = potential(seen)
    assert elsewhere.max() == (2.0 if combine == "sum" else 1.0), "the estimator is clipped at 1"
    on_goal = potential(seen[:1], np.array([True]))[0]
    for start in np.unique(elsewhere):
        entering = shaped_reward(1.0, float(start), float(on_goal), GAMMA)
        others = shaped_reward(np.zeros(len(seen)), np.full(len(seen), start), elsewhere, GAMMA)
        assert entering > others.max() + 0.5 * (1.0 - GAMMA)


@SUM_AND_PRODUCT
@pytest.mark.parametrize("value", [1.0, 5.0])
@pytest.mark.parametrize("discount", [0.5, GAMMA, 1.0])
def test_finishing_beats_hovering_beside_the_goal(combine, value, discount):
    """Enter from 2.1 cm, or stay there until the time limit of 100 steps."""
    potential = Potential(Recording(value), [observe("state", walk(50))], gamma=GAMMA, combine=combine)
    beside = observe("state", np.array([[0.021, 0.0]]))
    phi, on_goal = float(potential(beside)[0]), float(potential(beside, np.array([True]))[0])
    finishing = shaped_reward(1.0, phi, on_goal, GAMMA)
    hovering = sum(discount**t * shaped_reward(0.0, phi, phi, GAMMA) for t in range(100))
    assert phi > 0.0 and finishing > hovering


def test_terminal_is_a_parameter():
    potential = Potential(Recording(0.5), [observe("state", walk(10))], terminal=2.5)
    np.testing.assert_array_equal(potential(grid()[:2], np.array([True, True])), 2.5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_potential_that_is_not_finite_is_named(value):
    shown = observe("state", walk(10))
    with pytest.raises(ValueError, match=r"^Potential\(state, 1 demonstrations, .*not finite.*(nan|inf)"):
        Potential(Recording(value), [shown])(shown)
    shown[3, 5] = value
    with pytest.raises(ValueError, match=r"^Potential\(.*not finite: observation 3"):
        Potential(Recording(0.5), [observe("state", walk(10))])(shown)


def test_training_the_estimator_does_not_move_the_potential():
    estimator, shown = make_estimator("state"), demonstrations("state")
    potential = Potential(estimator, shown)
    seen = observe("state", walk(30, seed=9), seed=9)
    before, fingerprint = potential(seen), potential.fingerprint()
    estimator.train()
    estimator.raw_value(torch.from_numpy(seen)).sum().backward()
    with torch.no_grad():
        for parameter in estimator.parameters():
            parameter -= 0.1 * (parameter.grad if parameter.grad is not None else 1.0)
    np.testing.assert_array_equal(potential(seen), before)
    assert potential.fingerprint() == fingerprint
    assert np.abs(Potential(estimator, shown)(seen) - before).max() > 1e-3


def test_fingerprint_sees_everything_the_potential_depends_on():
    estimator, shown = make_estimator("state"), demonstrations("state")
    other = make_estimator("state")
    with torch.no_grad():
        other.value[0].bias[0] += 1e-3
    same = Potential(estimator, shown).fingerprint()
    assert Potential(make_estimator("state"), shown).fingerprint() == same
    others = [
        Potential(other, shown),
        Potential(estimator, shown[:2]),
        Potential(estimator, shown[::-1]),
        *(
            Potential(estimator, shown, **one)
            for one in ({"combine": "sum"}, {"radius": 0.1}, {"terminal": 0.0}, {"spacing": 0.0})
        ),
    ]
    assert len({same, *(potential.fingerprint() for potential in others)}) == 8
    with pytest.raises(TypeError, match="Recording has no fingerprint"):
        Potential(Recording(0.5), shown).fingerprint()
