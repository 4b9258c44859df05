"""Registry of encoders by name.

An encoder is an `nn.Module` constructed as ``Encoder(in_shape, out_features=64, **own)`` with the attribute
``out_features``. It maps observations in metres and m/s, ``Float[Tensor, "batch *in_shape"]``, to
``Float[Tensor, "batch out_features"]`` and scales its inputs itself.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from torch import nn

Encoder = TypeVar("Encoder", bound=type[nn.Module])

# Each entry is a class, or the name of the module that registers the class and is imported on first use.
_ENCODERS: dict[str, type[nn.Module] | str] = {
    name: f"perception.encoders.{name}"
    for name in (
        "state",
        "identity",
        "pointnet",
        "pointnet2",
        "dgcnn",
        "set_transformer",
        "rgbd_cnn",
        "mlp",
        "centroid",
    )
}


def register_encoder(name: str) -> Callable[[Encoder], Encoder]:
    """Return a decorator that registers a class under a name and returns the class unchanged.

    Raises:
        ValueError: Another class is registered under the name.
    """

    def register(encoder: Encoder) -> Encoder:
        if _ENCODERS.get(name, encoder.__module__) != encoder.__module__:
            raise ValueError(f"encoder {name!r} is registered already; choose a name other than {', '.join(_ENCODERS)}")
        _ENCODERS[name] = encoder
        return encoder

    return register


def make_encoder(name: str, **kwargs: Any) -> nn.Module:
    """Construct an encoder by its name, for example ``make_encoder("pointnet", in_shape=(20, 4), out_features=64)``.

    Raises:
        ValueError: Unknown name; the message lists the known ones.
    """
    return find_encoder(name)(**kwargs)


def find_encoder(name: str) -> type[nn.Module]:
    """Return the class registered under a name.

    Raises:
        ValueError: Unknown name; the message lists the known ones.
    """
    if name not in _ENCODERS:
        raise ValueError(f"unknown encoder {name!r}; known: {', '.join(available_encoders())}")
    entry = _ENCODERS[name]
    if isinstance(entry, str):
        import_module(entry)
        entry = _ENCODERS[name]
    assert not isinstance(entry, str), f"{entry} does not register {name!r}"
    return entry


def available_encoders() -> tuple[str, ...]:
    """Return the registered names in alphabetical order."""
    return tuple(sorted(_ENCODERS))
