"""A number that is not finite, as one line and a file that shows where it came from."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from agents.collecting.finite_env import FiniteEnv
from agents.finite import NotFiniteError, check_weights, named_weights
from envs.files import write_bytes


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
        arrays = transition | learned | named_weights(model.policy) | error.arrays
        path = directory / f"not-finite-{model.num_timesteps:09d}.npz"
        stream = io.BytesIO()
        plain = arrays | {"environment": json.dumps(arrays.get("environment"))}
        np.savez_compressed(stream, **{name: np.asarray(value) for name, value in plain.items()})
        write_bytes(path, stream.getvalue())
        episode = f", episode {arrays['episode']}" if "episode" in arrays else ""
        where = f"step {arrays['step']}{episode} of the {arrays['role']}"
        raise ValueError(f"{error} in {where}; {path} shows where it came from") from error
