"""Report of a number that is not finite: a one-line error and a file with its context."""

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
    """Convert a `NotFiniteError` to a one-line ValueError, and write a file with its context to `directory`.

    The file, a plain `.npz`, holds the weights of the policy, the quantity itself and, if it comes from an environment,
    the last transition. `set_states(env, json.loads(str(file["environment"])))` followed by `env.step(file["action"])`
    repeats the step.

    Args:
        directory: Directory of the file.
        model: Learner, an algorithm of Stable-Baselines3; provides the step and the weights.
        env: Environment whose last transition is always included, if given.

    Raises:
        ValueError: A number is not finite; the message names it, the step and the file.
    """
    try:
        try:
            yield
        except NotFiniteError:
            raise
        except (ValueError, RuntimeError):
            check_weights(model.policy)  # other code may fail first because of such a weight
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
