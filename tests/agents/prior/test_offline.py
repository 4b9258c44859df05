"""The prior from recorded episodes, in a corridor whose steps are known."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch

from agents import fit_value_offline
from agents.prior.calibration import calibrate_on
from agents.prior.config import OfflineConfig
from agents.prior.episodes import check_episodes, hindsight_replay
from agents.prior.learner import HIDDEN
from agents.prior.offline import learn_offline
from agents.prior.value_head import fit_head
from shaping import BoxGoals, ValueEstimator
from shaping.success.reached import goal_reward, goal_test

GOALS = BoxGoals(2, achieved=slice(0, 1), desired=slice(1, 2))
CELLS, WIDTH = 9, 0.1
LEARNER = OfflineConfig(gamma=0.9, tau=0.05, batch_size=64, learning_rate=1e-3, elsewhere=0.5, value_steps=300)


def walk(cells, goal=0):
    """Walk through the cells of a corridor; the observation is [x, x of a goal that plays no part]."""
    places = np.array([[cell * WIDTH, goal * WIDTH] for cell in cells], np.float32)
    return places, np.sign(np.diff(places[:, :1], axis=0)) * 0.8


def random_walks(count=60, steps=8):
    """Random behaviour, in one half of the corridor or the other; both have the cell in the middle."""
    rng, walks = np.random.default_rng(0), []
    for _ in range(count):
        low, high = ((0, CELLS // 2), (CELLS // 2, CELLS - 1))[rng.integers(2)]
        cells = [int(rng.integers(low, high + 1))]
        for _ in range(steps):
            cell = cells[-1] + rng.choice((-1, 1))
            cells.append(cell if low <= cell <= high else 2 * cells[-1] - cell)
        walks.append(walk(cells, goal=rng.integers(CELLS)))
    return walks


def fit(walks, steps, seed=0, learner=LEARNER):
    reward, episodes = partial(goal_reward, GOALS, goal_test(GOALS, WIDTH / 2, None)), check_episodes(walks, GOALS)
    replay = hindsight_replay(episodes, GOALS, reward, goal_speed=1.0, elsewhere=learner.elsewhere, seed=seed)
    model = learn_offline(replay, "identity", learner, steps, seed)
    estimator = ValueEstimator("state", "identity", hidden=HIDDEN, action_dim=1, gamma=learner.gamma, goals=GOALS)
    return fit_head(model, estimator, learner.value_steps)


def pairs():
    """Every pair of cell and goal that differ, and the observations of them."""
    cell, goal = (part.ravel() for part in np.meshgrid(np.arange(CELLS), np.arange(CELLS)))
    apart = cell != goal
    cell, goal = cell[apart], goal[apart]
    return cell, goal, torch.tensor(np.stack([cell, goal], axis=1) * WIDTH, dtype=torch.float32)


@pytest.mark.slow
def test_the_value_is_the_discount_to_the_fewest_steps_and_the_goal_policy_takes_them():
    """Also from one half of the corridor to the other, which no episode does."""
    estimator = fit(random_walks(), 1000)
    cell, goal, seen = pairs()
    steps = np.zeros((CELLS, CELLS), int)
    for aim in range(CELLS):  # breadth-first search
        border, found = {aim}, {aim}
        for distance in range(CELLS):
            for place in border:
                steps[place, aim] = distance
            border = {n for place in border for n in (place - 1, place + 1) if 0 <= n < CELLS} - found
            found |= border
    value, expected = (
        estimator(seen).detach().numpy(),
        0.9 ** (steps[cell, goal] - 1),
    )  # the last step is not discounted
    error = np.abs(value - expected)
    across = (cell - CELLS // 2) * (goal - CELLS // 2) < 0
    assert across.sum() == 32 and error.mean() < 0.08 and error[across].mean() < 0.1
    assert np.corrcoef(value, expected)[0, 1] > 0.95
    assert (np.sign(estimator.act(seen).detach().numpy()[:, 0]) == np.sign(goal - cell)).mean() > 0.95


def test_a_fit_repeats_with_its_seed_whichever_goals_the_environment_had():
    """The goal that an episode pursued plays no part, even if it moves."""
    walks, learner = random_walks(10), dataclasses.replace(LEARNER, value_steps=5)
    moved = [(np.float32(places + [[0.0, 3.0]] * np.arange(len(places))[:, None]), acts) for places, acts in walks]
    one, same, other = (fit(walks, 20, seed, learner).fingerprint() for seed in (0, 0, 1))
    assert one == same == fit(moved, 20, learner=learner).fingerprint() != other


class Exact(torch.nn.Module):
    """γ to the number of cells between x and the goal."""

    goals, gamma = GOALS, 0.9

    def forward(self, observation):
        return self.gamma ** ((observation[:, 0] - observation[:, 1]).abs() / WIDTH).round()


def test_recorded_episodes_are_followed_to_where_they_end():
    """The goals that they had lie elsewhere. A detour costs steps that the value does not count."""
    walks = check_episodes([walk(range(7), goal=3), walk([4, 3, 2]), walk([0, 1, 0]), walk([5, 6, 7, 6])], GOALS)
    found = calibrate_on(walks, Exact(), partial(goal_reward, GOALS, goal_test(GOALS, WIDTH / 2, None)), goal_speed=1.0)
    assert found.success_rate == 0.75  # the third ends where it starts
    np.testing.assert_array_equal(found.remaining, [6, 5, 4, 3, 2, 1, 2, 1, 1])
    np.testing.assert_allclose(found.values, 0.9**found.remaining, rtol=1e-5)
    assert found.rank_correlation == pytest.approx(1.0)


def test_fit_value_offline_makes_a_file_and_is_calibrated_on_episodes_that_were_held_out(tmp_path, capsys):
    learner = dataclasses.replace(LEARNER, value_steps=20)
    walks = [walk(range(1 + number % 3, 6 + number % 4)) for number in range(40)]
    value = fit_value_offline(walks, GOALS, reached=WIDTH / 2, steps=50, learner=learner, plot=tmp_path / "plot.png")
    assert "along held-out episodes, 100% of 4 that go to where they end" in capsys.readouterr().out
    assert (tmp_path / "plot.png").stat().st_size > 1000
    value.save(tmp_path / "value.pt")
    loaded = ValueEstimator.load(tmp_path / "value.pt", observation="state")
    assert loaded.goals == GOALS and loaded.action_dim == 1


GOOD = walk(range(5))


@pytest.mark.parametrize(
    "episodes, said",
    [
        ([], "there are no episodes"),
        ([GOOD, (GOOD[0], None)], r"episode 1: is no pair of observations"),
        ([GOOD, (GOOD[0], GOOD[1][:-1])], "episode 1: has 5 observations and 3 actions, not H [+] 1 and H"),
        ([(GOOD[0][:1], GOOD[1][:0])], "episode 0: has 1 observations and 0 actions"),
        (
            [(GOOD[0][:, :1], GOOD[1])],
            r"episode 0: observations are of shape \(1,\), but the goals are for shape \(2,\)",
        ),
        ([GOOD, (GOOD[0], np.ones((4, 2)))], r"episode 1: actions are of shape \(4, 2\), not \(H, 1\)"),
        ([(GOOD[0], 5 * GOOD[1])], r"episode 0: actions reach 4; scale them to \[-1, 1\]"),
        ([(GOOD[0] * np.nan, GOOD[1])], "episode 0: observations are not finite"),
    ],
)
def test_episodes_that_do_not_fit_are_named(episodes, said):
    with pytest.raises(ValueError, match=said) as refused:
        fit_value_offline(episodes, GOALS, reached=0.05)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "settings, said",
    [
        ({}, "there is no environment to ask: give reached="),
        ({"reached": 0.05, "steps": 0}, "steps is 0"),
        ({"reached": 0.05, "plot": "missing/plot.png"}, "missing: no such directory for plot="),
        ({"reached": 0.05, "learner": OfflineConfig(elsewhere=2.0)}, "learner.elsewhere is 2"),
    ],
)
def test_arguments_are_checked_before_the_fit(settings, said):
    with pytest.raises((ValueError, OSError), match=said):
        fit_value_offline([GOOD], GOALS, **settings)
