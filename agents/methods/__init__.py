"""Construction of the agent of each method."""

from agents.methods.shaped_sac import collect_beside, make_agent

__all__ = ["collect_beside", "make_agent"]
