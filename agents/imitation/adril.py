"""AdRIL: demonstrated transitions are rewarded, those of earlier rounds are penalised."""

import numpy as np
from jaxtyping import Float

from agents.imitation.expert import with_absorbing
from agents.replay.rewards import Rows

ROUND = 1250  # environment steps of a round


class AdRIL:
    """Reward of demonstrated rows and of the agent's rows of earlier rounds.

    It is 1/(number of demonstrations) for demonstrated rows, −1/(number of the agent's episodes) for the agent's rows
    of earlier rounds, and 0 for those of the present round.

    Batches of demonstrated and of the agent's rows alternate (`ShapedReplayBuffer.set_demonstrations`). The absorbing
    state has the reward of the terminal transition before it (Swamy et al. 2021, "Of moments and matching").

    Args:
        demonstrations: Number of demonstrations.
        gamma: Discount of the learner.
    """

    def __init__(self, demonstrations: int, gamma: float) -> None:
        self.demonstrations, self.gamma = demonstrations, gamma

    def __call__(self, rows: Rows) -> Float[np.ndarray, " batch"]:
        """Return the rewards; the replay buffer must not have overwritten rows."""
        buffer = rows.buffer
        if buffer.demonstrated:
            rewards = np.full(len(rows.rows), 1.0 / self.demonstrations)
        else:
            filled = buffer.size()
            earlier = np.ceil((rows.rows + 1) * buffer.n_envs / ROUND) < np.ceil(filled * buffer.n_envs / ROUND)
            rewards = -1.0 * earlier / max(1.0, buffer.dones[:filled].sum())
        return with_absorbing(rewards, rows.terminal, rewards, self.gamma)
