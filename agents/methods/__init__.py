"""How the agent of each method is put together."""

from agents.methods.shaped_sac import collect_beside, make_agent

__all__ = ["collect_beside", "make_agent"]
