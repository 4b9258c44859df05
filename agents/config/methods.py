"""Methods: what a training switches on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Method:
    """Parts of a method.

    Attributes:
        buffer: Demonstrated transitions take a share of every batch.
        potential: The reward is shaped by Φ.
        annealing: The learner's discount rises from 0 to γ.
        guide: The goal policy of the prior takes a share of the early training steps.
        imitation: Name of the baseline that replaces the reward, or learns in place of SAC ("bc"); empty for none.
        defaults: Settings of the learner that belong to the method's definition.
    """

    buffer: bool = False
    potential: bool = False
    annealing: bool = False
    guide: bool = False
    imitation: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def demonstrations(self) -> bool:
        """Whether the method needs demonstrated transitions, with actions."""
        return self.buffer or bool(self.imitation)

    @property
    def uses_demonstrations(self) -> bool:
        """Whether the method needs demonstrations, with or without actions."""
        return self.potential or self.demonstrations

    @property
    def features(self) -> bool:
        """Whether the reward is a function of an encoder's features."""
        return self.imitation in ("gail", "pwil", "dril")

    @property
    def critic(self) -> bool:
        """Whether the method learns by reinforcement, with a critic and steps in the environment."""
        return self.imitation != "bc"


# The rows of the paper's table (mean_std); none has a guide. Those with the potential may have one.
_ROWS = {
    "buffer+potential+annealing": Method(buffer=True, potential=True, annealing=True),
    "buffer+potential": Method(buffer=True, potential=True),
    "potential+annealing": Method(potential=True, annealing=True),
    "potential": Method(potential=True),
    "buffer": Method(buffer=True),
    "sparse": Method(),
}
# The imitation learning baselines, with the settings of their reference implementation that define them.
_BASELINES = {
    "gail": Method(imitation="gail", defaults={"gamma": 0.97, "target_entropy": -0.5}),
    "pwil": Method(imitation="pwil"),
    "dril": Method(imitation="dril"),
    "adril": Method(imitation="adril", defaults={"gamma": 0.98}),
    "bc": Method(imitation="bc", defaults={"learning_rate": 2.5e-4, "actor_tau": 1.0}),
}
METHODS: dict[str, Method] = (
    _ROWS
    | {
        f"{name}+guide": Method(row.buffer, row.potential, row.annealing, guide=True)
        for name, row in _ROWS.items()
        if row.potential
    }
    | _BASELINES
)
BC_STEPS = 50_000  # gradient steps of behavioural cloning
DEFAULT = "buffer+potential+annealing+guide"
