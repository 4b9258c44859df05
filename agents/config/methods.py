"""Methods: what a training switches on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """Parts of a method.

    Attributes:
        buffer: Demonstrated transitions take a share of every batch.
        potential: The reward is shaped by Φ.
        annealing: The learner's discount rises from 0 to γ.
        guide: The goal policy of the prior takes a share of the early training steps.
    """

    buffer: bool = False
    potential: bool = False
    annealing: bool = False
    guide: bool = False


# The rows of the paper's table (mean_std); none has a guide. Those with the potential may have one.
_ROWS = {
    "buffer+potential+annealing": Method(buffer=True, potential=True, annealing=True),
    "buffer+potential": Method(buffer=True, potential=True),
    "potential+annealing": Method(potential=True, annealing=True),
    "potential": Method(potential=True),
    "buffer": Method(buffer=True),
    "sparse": Method(),
}
METHODS: dict[str, Method] = _ROWS | {
    f"{name}+guide": Method(row.buffer, row.potential, row.annealing, guide=True)
    for name, row in _ROWS.items()
    if row.potential
}
DEFAULT = "buffer+potential+annealing+guide"
