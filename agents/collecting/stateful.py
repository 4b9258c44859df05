"""Access to the states that a checkpoint stores as plain data.

The state of an environment consists of the states of all its layers that have one.
"""

from typing import Any, Protocol


class Stateful(Protocol):
    """Object whose state is stored in checkpoints."""

    def get_state(self) -> dict[str, Any]:
        """Return the state as tensors and plain data."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""


def get_states(env: Any) -> list[dict[str, Any]]:
    """Return the states of the layers of `env`, outermost first, as plain data."""
    return [layer.get_state() for layer in _layers(env)]


def set_states(env: Any, states: list[dict[str, Any]]) -> None:
    """Restore the states returned by `get_states`.

    Raises:
        ValueError: The states belong to another environment.
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


def get_vec_state(env: Any) -> dict[str, Any]:
    """Return the states of a `DummyVecEnv`'s environments and the episode rewards of their `Monitor`s as plain data."""
    return {
        "environments": [get_states(monitor) for monitor in env.envs],
        "episodes": [[float(reward) for reward in monitor.rewards] for monitor in env.envs],
    }


def set_vec_state(env: Any, state: dict[str, Any]) -> None:
    """Restore the state returned by `get_vec_state`.

    Raises:
        ValueError: The state belongs to other environments, or to another number of them.
    """
    for monitor, layers, rewards in zip(env.envs, state["environments"], state["episodes"], strict=True):
        monitor.reset()  # required by wrappers; the restored state overwrites its result
        monitor.rewards, monitor.needs_reset = list(rewards), False
        set_states(monitor, layers)
