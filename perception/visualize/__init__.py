"""Pictures of what the agent sees and of the potential that guides it: ``python -m perception.visualize``.

The drawing functions take arrays; `__main__` composes them with the simulator and the potential, and nobody imports it.
"""
