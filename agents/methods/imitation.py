"""Reward of an imitation learning method, made of the agent's demonstrations."""

from typing import Any

from torch import nn

from agents.config import TrainConfig
from agents.imitation.adril import AdRIL
from agents.imitation.dril import DRIL
from agents.imitation.expert import Embedding, expert_pairs
from agents.imitation.gail import GAIL
from agents.imitation.pwil import PWIL
from agents.methods.encoder import encoder_info
from agents.methods.potential import load_estimator
from agents.replay.rewards import Reward
from agents.sac import SAC
from agents.tasks import get_task
from perception.registry import make_encoder


def make_reward(name: str, config: TrainConfig, model: SAC, horizon: int) -> Reward:
    """Make the reward of a method.

    Args:
        name: "gail", "pwil", "dril" or "adril".
        config: Configuration of the training.
        model: Agent, whose replay buffer has demonstrations.
        horizon: Maximum number of steps of an episode.

    Raises:
        ValueError: The buffer is too small for AdRIL, whose rounds are counted over all its rows; or the discount is 1,
            with which the value of an absorbing state is infinite.
    """
    buffer: Any = model.replay_buffer
    demonstrations, gamma = buffer.demonstrations, config.learner.gamma
    if gamma == 1.0 and name != "pwil":
        raise ValueError(f"--learner.gamma is 1; give a smaller one, since --method {name} has an absorbing state")
    if name == "adril":
        if buffer.buffer_size * model.n_envs < config.environment_steps:
            raise ValueError("--method adril keeps all transitions; give a --learner.buffer-size of at least --steps")
        return AdRIL(int(demonstrations.dones.sum()), gamma)
    embedding = Embedding(fixed_encoder(config), model.device)
    expert = expert_pairs(demonstrations, embedding)
    if name == "pwil":
        return PWIL(expert, embedding, horizon, model.n_envs)
    if name == "dril":
        return DRIL(expert, embedding, gamma, config.seed, model.actor, demonstrations)
    return GAIL(expert, embedding, gamma, config.seed)


def fixed_encoder(config: TrainConfig) -> nn.Module:
    """Return the encoder whose features the rewards see: the estimator's if it has weights, else the agent's."""
    info = encoder_info(config)
    if info.has_weights:
        return load_estimator(config).encoder.requires_grad_(False)
    return make_encoder(info.name, in_shape=get_task(config.task).view(config.obs).space.shape)
