"""What a checkpoint keeps: the state of whatever carries some from step to step, plain data.

That of an environment is that of every layer which carries some.
"""

from typing import Any, Protocol


class Stateful(Protocol):
    """Something that a checkpoint keeps beside the agent."""

    def get_state(self) -> dict[str, Any]:
        """Tensors and plain data."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""


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


def get_vec_state(env: Any) -> dict[str, Any]:
    """The states of a `DummyVecEnv`'s environments, and the rewards of the episodes in their `Monitor`s: plain data."""
    return {
        "environments": [get_states(monitor) for monitor in env.envs],
        "episodes": [[float(reward) for reward in monitor.rewards] for monitor in env.envs],
    }


def set_vec_state(env: Any, state: dict[str, Any]) -> None:
    """Continue from what `get_vec_state` returned.

    Raises:
        ValueError: The state is that of another number of environments, or of others.
    """
    for monitor, layers, rewards in zip(env.envs, state["environments"], state["episodes"], strict=True):
        monitor.reset()  # wrappers insist on it; the state overwrites what it drew
        monitor.rewards, monitor.needs_reset = list(rewards), False
        set_states(monitor, layers)
