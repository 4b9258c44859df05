"""Pictures of what the agent sees and of the potential that guides it: ``python -m perception.visualize``.

The drawing functions take arrays; `pictures` composes them with the simulator and the potential.
"""
