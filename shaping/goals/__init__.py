"""Goal sets in observation space."""

from shaping.goals.box import BoxGoals, dict_goals
from shaping.goals.goal_set import GoalSet
from shaping.goals.plain_data import goals_from_dict, goals_to_dict
from shaping.goals.puck import CloudGoals, StateGoals, make_goals

__all__ = [
    "BoxGoals",
    "CloudGoals",
    "GoalSet",
    "StateGoals",
    "dict_goals",
    "goals_from_dict",
    "goals_to_dict",
    "make_goals",
]
