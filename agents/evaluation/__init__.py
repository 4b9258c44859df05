"""Episodes of a deterministic policy, counted and filmed."""

from agents.evaluation.episodes import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
