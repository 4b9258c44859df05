"""SAC policy with a registered encoder as features extractor, shared by actor and critic."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import torch
from jaxtyping import Float
from stable_baselines3.common.policies import BaseModel, ContinuousCritic
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.sac.policies import Actor, SACPolicy
from torch import Tensor

from perception.registry import make_encoder


class EncoderExtractor(BaseFeaturesExtractor):
    """Features extractor of Stable-Baselines3 that applies a registered encoder.

    Args:
        observation_space: Space of the observations.
        encoder: Name in the registry (`perception.available_encoders()`).

    Raises:
        ValueError: The encoder is unknown, or the observation space is not a Box.
    """

    def __init__(self, observation_space: gym.Space, encoder: str = "pointnet") -> None:
        if not isinstance(observation_space, gym.spaces.Box):
            raise ValueError(f"encoder {encoder!r} takes a Box of observations, not {observation_space}")
        module: Any = make_encoder(encoder, in_shape=observation_space.shape)
        super().__init__(observation_space, features_dim=module.out_features)
        self.encoder = module

    def forward(self, observations: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch features"]:
        """Return the encoder's features, shape (batch, features_dim)."""
        return self.encoder(observations)


def policy_settings(encoder: str, net_arch: Sequence[int], frozen: bool = False) -> dict[str, Any]:
    """Return the arguments of a `SharedEncoderPolicy` with a registered encoder and these hidden layers."""
    return {
        "features_extractor_class": EncoderExtractor,
        "features_extractor_kwargs": {"encoder": encoder},
        "net_arch": list(net_arch),
        "frozen": frozen,
        "optimizer_kwargs": {"fused": True},
    }


class Features(NamedTuple):
    """Output of an encoder, which `SharedActor` and `SharedCritic` accept instead of observations."""

    tensor: Float[Tensor, "batch features"]


class _TakesFeatures(BaseModel):
    def extract_features(self, obs: Any, features_extractor: BaseFeaturesExtractor) -> Float[Tensor, "batch features"]:
        """Return the features of observations; `Features` are returned as they are."""
        return obs.tensor if isinstance(obs, Features) else super().extract_features(obs, features_extractor)


class SharedActor(_TakesFeatures, Actor):
    """Actor that also accepts `Features`."""


class SharedCritic(_TakesFeatures, ContinuousCritic):
    """Critic that also accepts `Features`."""


class SharedEncoderPolicy(SACPolicy):
    """SAC policy with one encoder for actor and critic, trained by the critic's loss.

    In Stable-Baselines3, the actor's loss trains a shared encoder; the critic's loss is the stronger signal (Yarats et
    al. 2021, "Improving sample efficiency in model-free RL from images").

    Args:
        *args: As for `SACPolicy`.
        frozen: Whether the weights of the encoder are fixed.
        **kwargs: As for `SACPolicy`.
    """

    def __init__(self, *args: Any, frozen: bool = False, **kwargs: Any) -> None:
        self.frozen = frozen
        super().__init__(*args, **{**kwargs, "share_features_extractor": True})

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        encoder = list(self.actor.features_extractor.parameters())
        for parameter in encoder:
            parameter.requires_grad_(not self.frozen)
        shared = {id(p) for p in encoder}
        heads = [p for p in self.actor.parameters() if id(p) not in shared]
        critic = [p for p in self.critic.parameters() if id(p) not in shared]
        options = dict(self.optimizer_kwargs, lr=lr_schedule(1))
        self.actor.optimizer = self.optimizer_class(heads, **options)
        self.critic.optimizer = self.optimizer_class(critic + ([] if self.frozen else encoder), **options)

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> SharedActor:
        """Make the actor."""
        return SharedActor(**self._update_features_extractor(self.actor_kwargs, features_extractor)).to(self.device)

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> SharedCritic:
        """Make the critic or the target network."""
        return SharedCritic(**self._update_features_extractor(self.critic_kwargs, features_extractor)).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return super()._get_constructor_parameters() | {"frozen": self.frozen}

    def load_encoder(self, encoder: torch.nn.Module) -> None:
        """Copy the weights of a pre-trained encoder of the same type to actor, critic and target network.

        Raises:
            ValueError: The encoder's weights have other names or shapes.
        """
        try:
            for owner in (self.actor, self.critic_target):
                extractor: Any = owner.features_extractor
                extractor.encoder.load_state_dict(encoder.state_dict())
        except RuntimeError as error:
            raise ValueError(
                f"the estimator's encoder does not fit this policy's: {str(error).splitlines()[-1]}"
            ) from error
