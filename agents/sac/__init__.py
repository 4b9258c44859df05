"""Soft actor-critic as a Stable-Baselines3 algorithm."""

from agents.sac.algorithm import SAC

__all__ = ["SAC"]
