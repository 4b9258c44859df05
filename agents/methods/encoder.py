"""Which encoder an agent has, how wide it is, and whether it starts from the estimator's."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from agents.config import TrainConfig
from agents.methods.potential import load_estimator
from agents.tasks import get_task
from perception.registry import available_encoders, find_encoder


@dataclass(frozen=True)
class EncoderInfo:
    """What is known of an encoder before there is an agent.

    Attributes:
        name: In the registry.
        out_features: Its width.
        has_weights: Whether there is something to train.
    """

    name: str
    out_features: int
    has_weights: bool


def encoder_info(config: Any) -> EncoderInfo:
    """Describe the encoder of a training or a pre-training.

    Raises:
        ValueError: It is not registered; lists those that are.
    """
    view = get_task(config.task).view(config.obs)
    name = view.encoder if config.encoder is None else config.encoder
    if name not in available_encoders():
        raise ValueError(
            f"unknown encoder {name!r}; registered encoders: {', '.join(available_encoders())}; "
            "choose one of them by --encoder, or register it"
        )
    return EncoderInfo(name, *_built(cast(Any, find_encoder(name)), view.space.shape))


@lru_cache
def _built(encoder: Any, in_shape: tuple[int, ...]) -> tuple[int, bool]:
    made = encoder(in_shape=in_shape)
    return made.out_features, any(True for _ in made.parameters())


def is_pretrained(config: TrainConfig) -> bool:
    """Whether the policy's encoder starts from the estimator's: not from scratch, and it has weights."""
    return config.learner.encoder_training != "scratch" and encoder_info(config).has_weights


def stored_features(config: TrainConfig) -> int:
    """Number of features that the replay buffer holds of each observation: those of a pre-trained, frozen encoder."""
    frozen = config.learner.encoder_training == "frozen" and is_pretrained(config)
    return encoder_info(config).out_features if frozen else 0


def check_encoder(config: TrainConfig) -> None:
    """Check that the estimator has the encoder that the policy's is to start from.

    Raises:
        FileNotFoundError: No such estimator.
        ValueError: It has another encoder, or is none.
    """
    if not is_pretrained(config):
        return
    made_with, name = load_estimator(config).config["encoder"], encoder_info(config).name
    if made_with != name:
        raise ValueError(
            f"--learner.encoder-training {config.learner.encoder_training}: the estimator was made with encoder "
            f"{made_with!r}, not {name!r}; choose scratch, or an --estimator that agents.pretrain made with {name!r}"
        )
