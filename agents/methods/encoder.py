"""Properties of an agent's encoder: name, output width and initial weights."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from agents.config import METHODS, TrainConfig
from agents.methods.potential import load_estimator
from agents.tasks import get_task
from perception.registry import available_encoders, find_encoder


@dataclass(frozen=True)
class EncoderInfo:
    """Properties of an encoder that are known before the agent is made.

    Attributes:
        name: Name in the registry.
        out_features: Number of output features.
        has_weights: Whether the encoder has trainable parameters.
    """

    name: str
    out_features: int
    has_weights: bool


def encoder_name(config: Any) -> str:
    """Return the name of the encoder of a training or a pre-training, by default that of its observation."""
    return get_task(config.task).view(config.obs).encoder if config.encoder is None else config.encoder


def encoder_info(config: Any) -> EncoderInfo:
    """Describe the encoder of a training or a pre-training.

    Raises:
        ValueError: The encoder is not registered; the message lists the registered ones.
    """
    name, shape = encoder_name(config), get_task(config.task).view(config.obs).space.shape
    if name not in available_encoders():
        remedy = (
            "name it on the command line, --encoder or --imports module:Name, to import it"
            if ":" in name
            else "choose one of them, register it, or name your own, module:Name"
        )
        raise ValueError(
            f"--encoder: unknown encoder {name!r}; registered encoders: {', '.join(available_encoders())}; {remedy}"
        )
    return EncoderInfo(name, *_built(cast(Any, find_encoder(name)), shape))


@lru_cache
def _built(encoder: Any, in_shape: tuple[int, ...]) -> tuple[int, bool]:
    made = encoder(in_shape=in_shape)
    return made.out_features, any(True for _ in made.parameters())


def needs_prior(config: TrainConfig) -> bool:
    """Return whether a method needs Ṽ_g: for Φ, or for the features that its reward sees."""
    method = METHODS[config.method]
    return method.potential or (method.features and encoder_info(config).has_weights)


def is_pretrained(config: TrainConfig) -> bool:
    """Return whether the policy's encoder has weights and starts from those of the estimator."""
    return config.learner.encoder_training != "scratch" and encoder_info(config).has_weights


def stored_features(config: TrainConfig) -> int:
    """Return the number of features stored per observation: that of a pre-trained and frozen encoder, else 0."""
    frozen = config.learner.encoder_training == "frozen" and is_pretrained(config)
    return encoder_info(config).out_features if frozen else 0


def check_encoder(config: TrainConfig) -> None:
    """Check that the estimator's encoder can initialise the policy's.

    Raises:
        FileNotFoundError: The estimator file does not exist.
        ValueError: The file is not an estimator, or the estimator has another encoder.
    """
    if not is_pretrained(config):
        return
    made_with, name = load_estimator(config).config["encoder"], encoder_info(config).name
    if made_with != name:
        raise ValueError(
            f"--learner.encoder-training {config.learner.encoder_training}: the estimator was made with encoder "
            f"{made_with!r}, not {name!r}; choose scratch (in a comparison: --vary learner.encoder-training scratch), "
            f"or an --estimator that agents.pretrain made with {name!r}"
        )
