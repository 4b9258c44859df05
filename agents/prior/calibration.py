"""Calibration of Ṽ_g: values compared with γ^n, where n is the number of steps that the goal policy takes to the goal.

Φ interprets Ṽ_g as γ^n. The fixed point of the learner is γ^(n − 1), because the step that enters the goal is rewarded
with 1, so an exact estimator is 1 % above γ^n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from scipy.stats import spearmanr

from agents.prior.episodes import Episode, GoalReward, achieved_goals
from agents.progress import counted
from shaping.success import succeeded
from shaping.value import ValueEstimator

BINS = ((1, 2), (3, 5), (6, 9), (10, 14), (15, 24), (25, 49))  # remaining steps
CALIBRATION_SEED = 4_000_000


@dataclass(frozen=True)
class Calibration:
    """Values along successful episodes of the goal policy.

    Attributes:
        success_rate: Success rate of the deterministic goal policy.
        values: Ṽ_g before each step of the successful episodes, shape (n,).
        remaining: Steps until the goal was reached, at least 1, shape (n,).
        gamma: Discount γ.
    """

    success_rate: float
    values: np.ndarray
    remaining: np.ndarray
    gamma: float

    @property
    def rank_correlation(self) -> float:
        """Spearman's ρ between the value and −n."""
        return float(spearmanr(self.values, -self.remaining).statistic)

    def table(self) -> list[dict[str, Any]]:
        """Return mean and standard deviation of the value and mean γ^n for each bin of remaining steps."""
        rows = []
        for low, high in BINS:
            inside = (self.remaining >= low) & (self.remaining <= high)
            if inside.any():
                value, expected = self.values[inside], self.gamma ** self.remaining[inside]
                row = {"steps": [low, high], "count": int(inside.sum()), "value": float(value.mean())}
                rows.append(row | {"spread": float(value.std()), "expected": float(expected.mean())})
        return rows

    @property
    def worst_error(self) -> float:
        """Largest |mean Ṽ_g − mean γ^n| over the bins up to 15 steps."""
        return max(abs(r["value"] - r["expected"]) for r in self.table() if r["steps"][1] <= 15)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "success_rate": self.success_rate,
            "rank_correlation": self.rank_correlation,
            "worst_error": self.worst_error,
            "table": self.table(),
        }


@torch.inference_mode()
def calibrate(estimator: ValueEstimator, env: gym.Env, episodes: int, seed: int = CALIBRATION_SEED) -> Calibration:
    """Run the goal policy for `episodes` episodes, and pair each value with the number of remaining steps.

    Raises:
        ValueError: No episode was successful.
    """
    env = gym.wrappers.RescaleAction(env, np.float32(-1.0), np.float32(1.0))  # the action range of the goal policy
    values, remaining, won = [], [], 0
    for episode in counted(range(episodes), "calibration", "episode"):
        observation, _ = env.reset(seed=seed + episode)
        along, terminated, truncated = [], False, False
        while not (terminated or truncated):
            tensor = torch.from_numpy(observation)[None]
            along.append(float(estimator(tensor)))
            observation, _, terminated, truncated, info = env.step(estimator.act(tensor)[0].numpy())
        if succeeded(info):
            won += 1
            values += along
            remaining += list(range(len(along), 0, -1))
    if not won:
        raise ValueError(f"the goal policy reached no goal in {episodes} episodes: train it longer (--steps)")
    return Calibration(won / episodes, np.array(values), np.array(remaining), estimator.gamma)


@torch.inference_mode()
def calibrate_on(
    episodes: Sequence[Episode], estimator: ValueEstimator, compute_reward: GoalReward, goal_speed: float
) -> Calibration:
    """Take the goal that each recorded episode achieves last, and pair each value with the remaining steps to it.

    The steps are those of the recorded behaviour, which may take more of them than the goal policy: the order of the
    values tells more than their size. Episodes that start at their goal, or pass it too fast, are left out.

    Args:
        episodes: Episodes on which the estimator was not trained.
        estimator: Estimator.
        compute_reward: See `GoalReward`.
        goal_speed: Bound to which the velocities of the goals are clipped per axis.

    Raises:
        ValueError: All episodes were left out.
    """
    goals, values, remaining, reached = estimator.goals, [], [], 0
    axes = len(range(*goals.counted.indices(goals.goal_dim)))
    for episode in episodes:
        observations = np.asarray(goals.centred(episode.observations))
        achieved = achieved_goals(episode._replace(observations=observations), goals)
        goal = achieved[-1:].copy()
        goal[:, axes:] = goal[:, axes:].clip(-goal_speed, goal_speed)
        there = np.flatnonzero(compute_reward(achieved, np.repeat(goal, len(achieved), axis=0), {}))
        if not len(there) or there[0] == 0:
            continue
        aimed = goals.substitute(observations[: there[0]], goal[:, : goals.goal_dim].astype(np.float32))[:, 0]
        reached += 1
        values += estimator(torch.from_numpy(aimed)).tolist()
        remaining += list(range(there[0], 0, -1))
    if not reached:
        raise ValueError(f"none of {len(episodes)} recorded episodes goes to where it ends: give longer ones")
    return Calibration(reached / len(episodes), np.array(values), np.array(remaining), estimator.gamma)
