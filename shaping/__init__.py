"""Potential-based reward shaping with a potential from demonstrations and a goal-conditioned value estimator."""

from shaping.discount import linear_annealing
from shaping.goals import BoxGoals, CloudGoals, GoalSet, StateGoals, dict_goals, make_goals
from shaping.potential import Potential
from shaping.reward import shaped_reward
from shaping.value import ValueEstimator
from shaping.wrapper import PotentialShaping

__all__ = [
    "BoxGoals",
    "CloudGoals",
    "GoalSet",
    "Potential",
    "PotentialShaping",
    "StateGoals",
    "ValueEstimator",
    "dict_goals",
    "linear_annealing",
    "make_goals",
    "shaped_reward",
]
