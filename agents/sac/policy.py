"""A registered encoder as Stable-Baselines3's features extractor, shared by actor and critic."""

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
    """Encode observations with the encoder registered under `encoder`.

    Args:
        observation_space: Space of the observations.
        encoder: Name in the registry (`perception.available_encoders()`).

    Raises:
        ValueError: Unknown encoder, or observations that are not one array of numbers.
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
    """Arguments of a `SharedEncoderPolicy` with a registered encoder and these hidden layers."""
    return {
        "features_extractor_class": EncoderExtractor,
        "features_extractor_kwargs": {"encoder": encoder},
        "net_arch": list(net_arch),
        "frozen": frozen,
        "optimizer_kwargs": {"fused": True},
    }


class Features(NamedTuple):
    """An encoder's output, which `SharedActor` and `SharedCritic` take in the place of observations."""

    tensor: Float[Tensor, "batch features"]


class _TakesFeatures(BaseModel):
    def extract_features(self, obs: Any, features_extractor: BaseFeaturesExtractor) -> Float[Tensor, "batch features"]:
        """Return the features of observations, or those that are given."""
        return obs.tensor if isinstance(obs, Features) else super().extract_features(obs, features_extractor)


class SharedActor(_TakesFeatures, Actor):
    """Actor whose encoder may have run already."""


class SharedCritic(_TakesFeatures, ContinuousCritic):
    """Critic whose encoder may have run already."""


class SharedEncoderPolicy(SACPolicy):
    """SAC's policy with one encoder for actor and critic, trained by the critic's loss.

    Stable-Baselines3's own sharing trains the encoder by the actor's loss; value learning is the stronger signal
    (Yarats et al. 2021, "Improving sample efficiency in model-free RL from images").

    Args:
        *args: As for `SACPolicy`.
        frozen: Keep the encoder's weights as they are.
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
        """Make the critic or its target."""
        return SharedCritic(**self._update_features_extractor(self.critic_kwargs, features_extractor)).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return super()._get_constructor_parameters() | {"frozen": self.frozen}

    def load_encoder(self, encoder: torch.nn.Module) -> None:
        """Copy the weights of a pre-trained encoder of the same kind into actor, critic and target.

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
