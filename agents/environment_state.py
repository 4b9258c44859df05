"""The state of an environment: that of every layer which carries some from step to step."""

from typing import Any


def get_states(env: Any) -> list[dict[str, Any]]:
    """What the layers of `env`, outermost first, return from their `get_state`: plain data."""
    return [layer.get_state() for layer in _layers(env)]


def set_states(env: Any, states: list[dict[str, Any]]) -> None:
    """Continue from what `get_states` returned.

    Raises:
        ValueError: The states are those of another environment.
    """
    for layer, state in zip(_layers(env), states, strict=True):
        layer.set_state(state)


def _layers(env: Any) -> list[Any]:
    found = []
    while env is not None:
        if "get_state" in vars(type(env)):
            found.append(env)
        env = getattr(env, "env", None)
    return found
