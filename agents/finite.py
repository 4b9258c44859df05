"""A number that is not finite stops a run where it appears, before anything learns from it."""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from agents.environment_state import get_states
from agents.files import write_bytes


class NotFiniteError(ValueError):
    """A number that should be finite is not.

    Args:
        message: Names the quantity.
        arrays: What shows where it came from.
        index: Where it is in the quantity.
    """

    def __init__(self, message: str, arrays: dict[str, Any] | None = None, index: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.arrays, self.index = arrays or {}, index


def check_finite(**named: Any) -> None:
    """Check numbers or arrays.

    Raises:
        NotFiniteError: One of them is not finite; names it, its value and its index.
    """
    for name, value in named.items():
        finite = np.isfinite(value)
        if not finite.all():
            index = np.argwhere(~finite)[0].tolist()
            where = f" at index {index}" if index else ""
            message = f"{name.replace('_', ' ')} is {np.asarray(value)[tuple(index)]}{where}"
            raise NotFiniteError(message, named, index)


def check_weights(module: torch.nn.Module) -> None:
    """Check the weights of a module.

    Raises:
        NotFiniteError: One of them is not finite; names it and carries them all.
    """
    for name, tensor in module.state_dict().items():
        if not torch.isfinite(tensor).all():
            raise NotFiniteError(f"weight {name} is not finite", _weights(module))


class FiniteEnv(gym.Wrapper):
    """Refuse observations, rewards and actions that are not finite, and remember the transition they belong to.

    Args:
        env: The environment; its layers may carry state (`get_state`).
        role: What it is for, to tell one from another.

    Attributes:
        transition: Step and episode, the observation and the environment's state before the step, then the action
            and what the step returned, as far as it came.
    """

    def __init__(self, env: gym.Env, role: str) -> None:
        super().__init__(env)
        self.transition: dict[str, Any] = {"role": role, "step": 0, "episode": 0, "observation": ()}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment.

        Raises:
            NotFiniteError: The observation is not finite.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        before = self.transition
        self.transition = {
            "role": before["role"],
            "step": before["step"],
            "episode": before["episode"] + 1,
            "observation": observation,
            "environment": get_states(self.env),
        }
        self._check("observation")
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment.

        Raises:
            NotFiniteError: Action, observation or reward are not finite, or the simulation became unstable.
        """
        before = self.transition
        self.transition = transition = {
            "role": before["role"],
            "step": before["step"] + 1,
            "episode": before["episode"],
            "observation": before.get("next_observation", before["observation"]),
            "environment": get_states(self.env),
            "action": action,
        }
        self._check("action")
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except FloatingPointError as error:
            raise NotFiniteError(str(error), transition) from error
        transition |= {"next_observation": observation, "reward": reward}
        self._check("next_observation", "reward")
        return observation, reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """Step, episode and observation, as plain data for a checkpoint."""
        last = self.transition
        observation = last.get("next_observation", last["observation"])
        return {"step": last["step"], "episode": last["episode"], "observation": np.asarray(observation).tolist()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""
        observation = np.array(state["observation"], self.observation_space.dtype)
        self.transition |= {"step": state["step"], "episode": state["episode"], "observation": observation}
        self.transition.pop("next_observation", None)

    def _check(self, *names: str) -> None:
        try:
            check_finite(**{name: self.transition[name] for name in names})
        except NotFiniteError as error:
            error.arrays = self.transition
            raise


@contextmanager
def reporting(directory: Path, model: Any, env: FiniteEnv | None = None) -> Iterator[None]:
    """Turn a number that is not finite into one line, and a file in `directory` that shows where it came from.

    The file, plain `.npz`, holds the weights of the policy, the quantity itself, and, where that is an environment's,
    its last transition. With `set_states(env, json.loads(str(file["environment"])))` and `env.step(file["action"])` the
    step is repeated.

    Args:
        directory: For the file.
        env: An environment whose last transition is in the file whatever is not finite.
        model: The learner, an algorithm of Stable-Baselines3; it tells the step of what its own numbers spoil.

    Raises:
        ValueError: A number is not finite; names it, the step and the file.
    """
    try:
        try:
            yield
        except NotFiniteError:
            raise
        except (ValueError, RuntimeError):
            check_weights(model.policy)  # others stumble over a broken weight first
            raise
    except NotFiniteError as error:
        transition = {"role": "training"} if env is None else env.transition
        learned = {"step": model.num_timesteps, "episode": model._episode_num + 1}
        arrays = transition | learned | _weights(model.policy) | error.arrays
        path = directory / f"not-finite-{model.num_timesteps:09d}.npz"
        stream = io.BytesIO()
        plain = arrays | {"environment": json.dumps(arrays.get("environment"))}
        np.savez_compressed(stream, **{name: np.asarray(value) for name, value in plain.items()})
        write_bytes(path, stream.getvalue())
        episode = f", episode {arrays['episode']}" if "episode" in arrays else ""
        where = f"step {arrays['step']}{episode} of the {arrays['role']}"
        raise ValueError(f"{error} in {where}; {path} shows where it came from") from error


def _weights(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {f"weights/{name}": tensor.cpu().numpy() for name, tensor in module.state_dict().items()}
