"""GAIL, off-policy: the reward is the logit of a discriminator between demonstrated and sampled transitions."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torch.nn.utils.parametrizations import spectral_norm

from agents.imitation.expert import Embedding, Pairs, pairs_of, with_absorbing
from agents.replay.rewards import Rows

HIDDEN, LEARNING_RATE, WEIGHT_DECAY, PENALTY = 64, 3e-5, 10.0, 1.0


class GAIL:
    """Reward log D − log(1 − D) of a discriminator D(s, a), which takes a step before every gradient step of SAC.

    Ho & Ermon 2016, "Generative adversarial imitation learning", with the replay buffer and the absorbing state of
    Kostrikov et al. 2019.

    Args:
        expert: Demonstrated pairs, absorbing states included.
        embedding: Features of observations.
        gamma: Discount of the learner.
        seed: Seed of the weights and of the drawn pairs.
    """

    def __init__(self, expert: Pairs, embedding: Embedding, gamma: float, seed: int) -> None:
        self.expert, self.embedding, self.gamma = expert, embedding, gamma
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.discriminator = make_discriminator(expert.joined.shape[1]).to(embedding.device).eval()
        self.optimizer = torch.optim.AdamW(self.discriminator.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)

    def learn(self, rows: Rows) -> None:
        """Take a gradient step on the discriminator with the agent's rows of a batch."""
        agent = pairs_of(rows, self.embedding).followed_by_absorbing(rows.terminal).joined
        expert = self.expert.draw(len(agent), self.generator).joined
        share = torch.rand(len(agent), 1, generator=self.generator).to(agent.device)
        self.discriminator.train()
        loss = discriminator_loss(self.discriminator, expert, agent, share)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.discriminator.eval()

    @torch.no_grad()
    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return the logits, with the value of the absorbing state added to terminal transitions."""
        logits = self.discriminator(pairs_of(rows, self.embedding).joined)[:, 0].cpu().numpy()
        absorbing = self.discriminator(self.expert.absorbing().joined).item()
        return with_absorbing(logits, rows.terminal, absorbing, self.gamma)

    def get_state(self) -> dict[str, Any]:
        """Return discriminator, optimiser and generator, for checkpoints."""
        parts = {"discriminator": self.discriminator.state_dict(), "optimizer": self.optimizer.state_dict()}
        return parts | {"generator": self.generator.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        self.discriminator.load_state_dict(state["discriminator"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"].cpu())


def make_discriminator(inputs: int) -> nn.Sequential:
    """Make a discriminator with one hidden layer, spectral normalisation and orthogonal initial weights."""
    hidden, last = nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, 1)
    for layer, gain in ((hidden, nn.init.calculate_gain("relu")), (last, 1.0)):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(spectral_norm(hidden), nn.ReLU(), spectral_norm(last))


def discriminator_loss(
    discriminator: nn.Module,
    expert: Float[Tensor, "batch inputs"],
    agent: Float[Tensor, "batch inputs"],
    share: Float[Tensor, "batch 1"],
) -> Float[Tensor, ""]:
    """Return the cross-entropy, with a penalty on the gradient of the logit at share · expert + (1 − share) · agent."""
    real, fake = discriminator(expert), discriminator(agent)
    between = (share * expert + (1 - share) * agent).requires_grad_()
    (slope,) = torch.autograd.grad(discriminator(between).sum(), between, create_graph=True)
    loss = cross_entropy(real, torch.ones_like(real)) + cross_entropy(fake, torch.zeros_like(fake))
    return loss + PENALTY * slope.square().sum(dim=1).mean()
