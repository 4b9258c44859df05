"""DRIL: the reward penalises actions about which an ensemble of cloned policies disagrees."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from agents.imitation.cloning import clone, demonstrated_batch, log_likelihood
from agents.imitation.expert import Embedding, Pairs, pairs_of, with_absorbing
from agents.progress import counted
from agents.replay.rewards import Rows

ITERATIONS = 100_000  # gradient steps of the ensemble
HIDDEN, DROPOUT, LEARNING_RATE, BATCH = 64, 0.1, 3e-5, 256
PASSES, QUANTILE = 5, 0.98
LOG_STD = (-20.0, 2.0)  # range of the logarithmic deviation


class DRIL:
    """Reward +1 where the cloned policies agree about an action and −1 elsewhere, with cloning of the actor.

    The ensemble is one tanh-Gaussian network with dropout. Its uncertainty is the variance of π(a|s) over passes with
    different masks; the threshold is a quantile of the demonstrated pairs (Brantley et al. 2020,
    "Disagreement-regularized imitation learning").

    Args:
        expert: Demonstrated pairs, absorbing states included.
        embedding: Features of observations.
        gamma: Discount of the learner.
        seed: Seed of the weights and of the drawn pairs.
        actor: Actor that is cloned before each gradient step of SAC.
        demonstrations: `ShapedReplayBuffer` of the demonstrated transitions, for the actor.
    """

    def __init__(
        self,
        expert: Pairs,
        embedding: Embedding,
        gamma: float,
        seed: int,
        actor: Any,
        demonstrations: Any,
    ) -> None:
        self.expert, self.embedding, self.gamma = expert, embedding, gamma
        self.actor, self.demonstrations = actor, demonstrations
        self.generator = torch.Generator().manual_seed(seed)
        self.threshold: float | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.ensemble = make_ensemble(expert.features.shape[1], expert.actions.shape[1]).to(embedding.device)
        self.optimizer = torch.optim.AdamW(self.ensemble.parameters(), LEARNING_RATE, weight_decay=0.0)

    def prepare(self) -> None:
        """Fit the ensemble to the demonstrations and set the threshold, unless a state was restored."""
        if self.threshold is not None:
            return
        for _ in counted(range(ITERATIONS), "fitting DRIL's ensemble", "step"):
            drawn = self.expert.draw(BATCH, self.generator)
            loss = -log_likelihood(*distribution(self.ensemble, drawn.features), drawn.actions).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.threshold = torch.quantile(self.uncertainty(self.expert), QUANTILE).item()

    def learn(self, rows: Rows) -> None:
        """Take a cloning step on the actor."""
        clone(self.actor, *demonstrated_batch(self.demonstrations, len(rows.rows)))

    @torch.no_grad()
    def uncertainty(self, pairs: Pairs) -> Float[Tensor, " pairs"]:
        """Return the variance of π(a|s) over passes with different dropout masks."""
        features, actions = (part.repeat_interleave(PASSES, dim=0) for part in (pairs.features, pairs.actions))
        densities = log_likelihood(*distribution(self.ensemble, features), actions).double().exp()
        return densities.view(-1, PASSES).var(dim=1)

    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return ±1, with the value of the absorbing state added to terminal transitions."""
        pairs = pairs_of(rows, self.embedding).followed_by_absorbing(np.ones(1))
        rewards = np.where(self.uncertainty(pairs).cpu().numpy() <= self.threshold, 1.0, -1.0)
        return with_absorbing(rewards[:-1], rows.terminal, rewards[-1], self.gamma)

    def get_state(self) -> dict[str, Any]:
        """Return ensemble, threshold and generator, for checkpoints."""
        state = {"ensemble": self.ensemble.state_dict(), "threshold": self.threshold}
        return state | {"generator": self.generator.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        self.ensemble.load_state_dict(state["ensemble"])
        self.threshold = state["threshold"]
        self.generator.set_state(state["generator"].cpu())


def make_ensemble(inputs: int, actions: int) -> nn.Sequential:
    """Make the network of the ensemble, with dropout at the input and at the hidden layer."""
    hidden, last = nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, 2 * actions)
    return nn.Sequential(nn.Dropout(DROPOUT), hidden, nn.Dropout(DROPOUT), nn.Tanh(), last)


def distribution(ensemble: nn.Module, features: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and logarithmic deviation before tanh."""
    mean, log_std = ensemble(features).chunk(2, dim=1)
    return mean, log_std.clamp(*LOG_STD)
