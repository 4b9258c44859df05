"""Learning of goal policy and critics from recorded episodes alone."""

from contextlib import closing

import gymnasium as gym
from stable_baselines3.common.logger import Logger

from agents.prior.config import OfflineConfig
from agents.prior.learner import goal_sac
from agents.progress import Meter
from agents.replay import HindsightReplayBuffer
from agents.sac import SAC

CHUNK = 100  # gradient steps between two reports of the progress


def learn_offline(
    replay: HindsightReplayBuffer, encoder: str, learner: OfflineConfig, steps: int, seed: int = 0, device: str = "auto"
) -> SAC:
    """Train SAC with hindsight goals on recorded transitions.

    Temporal-difference learning as from play (`agents.prior.learner`): the value is γ to the power of the number of
    steps of the goal policy, which may put together parts of several episodes. What keeps it to what the data show are
    the bounds [0, 1] of the targets, the smaller of two critics, and a loss that holds the actions near the recorded
    ones (Fujimoto and Gu, "A minimalist approach to offline reinforcement learning", NeurIPS 2021).

    Args:
        replay: Buffer of the transitions, which draws the goals and says where they are reached.
        encoder: Name of a registered encoder.
        learner: Settings.
        steps: Gradient steps.
        seed: Seed of weights and sampled actions.
        device: cpu, cuda or auto.

    Raises:
        NotFiniteError: A loss is not finite; the message names it.
    """
    cloning = learner.cloning * (1 - learner.gamma)
    model = goal_sac(Spaces(replay), encoder, learner, seed, device, buffer_size=1, tau=learner.tau, cloning=cloning)
    model.replay_buffer = replay
    model.set_logger(Logger(None, []))
    with closing(Meter("offline training", "step", steps)) as meter:
        for done in range(0, steps, CHUNK):
            model.train(min(CHUNK, steps - done), learner.batch_size)
            meter.reach(min(done + CHUNK, steps))
    return model


class Spaces(gym.Env):
    """Spaces of recorded transitions, which is all that a learner from them needs of an environment."""

    def __init__(self, replay: HindsightReplayBuffer) -> None:
        self.observation_space, self.action_space = replay.observation_space, replay.action_space
