"""How much of the slot task's state the cameras' clouds hold: ``python -m perception.diagnose``.

`metrics` and `probe` are functions of arrays; `diagnosis` combines them with the simulator and a policy.
"""
