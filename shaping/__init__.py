"""Potential-based reward shaping with a potential from demonstrations and a goal-conditioned value estimator."""

from shaping.discount import linear_annealing
from shaping.goals import CloudGoals, GoalSet, StateGoals, make_goals
from shaping.potential import Potential
from shaping.reward import shaped_reward
from shaping.value import ValueEstimator
from shaping.wrapper import PotentialShaping

__all__ = [
    "CloudGoals",
    "GoalSet",
    "Potential",
    "PotentialShaping",
    "StateGoals",
    "ValueEstimator",
    "linear_annealing",
    "make_goals",
    "shaped_reward",
]
