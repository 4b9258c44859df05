"""Figures of the agent's observations and of the potential: ``python -m perception.visualize``.

The drawing functions take arrays; `pictures` combines them with the simulator and the potential.
"""
