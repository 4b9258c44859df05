"""Methods: the rows of the paper's table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """Components that a row of the paper's table enables."""

    potential: bool = False
    buffer: bool = False
    annealing: bool = False


METHODS: dict[str, Method] = {
    "buffer+potential+annealing": Method(potential=True, buffer=True, annealing=True),
    "buffer+potential": Method(potential=True, buffer=True),
    "potential+annealing": Method(potential=True, annealing=True),
    "potential": Method(potential=True),
    "buffer": Method(buffer=True),
    "sparse": Method(),
}
