"""Model, data and positions by name of any Gymnasium environment that simulates with MuJoCo."""

from collections.abc import Callable
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import gymnasium
import mujoco
import numpy as np
from jaxtyping import Float

# Name of a body, of a site or of an attribute of the unwrapped environment, or a function of the environment.
Anchor = str | Callable[[gymnasium.Env], Any]


def simulation(env: gymnasium.Env) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the current model and data of an environment.

    They are the attributes ``model`` and ``data`` of the unwrapped environment (Gymnasium, Gymnasium-Robotics) or of
    its ``sim`` (robosuite, also in its GymWrapper).

    Raises:
        ValueError: The environment has neither.
    """
    base: Any = env.unwrapped
    for holder in (base, getattr(base, "sim", None)):
        model, data = getattr(holder, "model", None), getattr(holder, "data", None)
        model, data = getattr(model, "_model", model), getattr(data, "_data", data)  # robosuite's own classes
        if isinstance(model, mujoco.MjModel) and isinstance(data, mujoco.MjData):
            return model, data
    raise ValueError(
        f"{type(base).__name__} has no MuJoCo simulation; give it the attributes model and data (MjModel, MjData)"
    )


def object_id(model: mujoco.MjModel, name: str) -> int:
    """Return the id of a body, or −1; the suffix "_main" of robosuite's objects may be left out."""
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body) for body in (name, f"{name}_main")]
    return ids[0] if ids[0] >= 0 else ids[1]


def check_anchor(env: gymnasium.Env, anchor: Anchor) -> None:
    """Check that an anchor names something.

    Raises:
        ValueError: The name is neither that of a body or site nor that of an attribute of the environment.
    """
    if not (callable(anchor) or _located(env, anchor) is not None or hasattr(env.unwrapped, anchor)):
        model, _ = simulation(env)
        names = [model.body(i).name for i in range(model.nbody)] + [model.site(i).name for i in range(model.nsite)]
        raise ValueError(
            f"unknown position {anchor!r}; give a function, an attribute of {type(env.unwrapped).__name__}, "
            f"or one of its bodies and sites: {', '.join(filter(None, names))}"
        )


def anchor_position(env: gymnasium.Env, anchor: Anchor, dims: int) -> Float[np.ndarray, " coordinates"]:
    """Return the position of an anchor, at most three coordinates, world frame [m].

    A name is looked up among the bodies, then the sites of the model, then the attributes of the unwrapped environment.

    Raises:
        ValueError: The position is no vector, or has fewer than ``dims`` coordinates.
    """
    if callable(anchor):
        position = anchor(env)
    else:
        position = _located(env, anchor)
        position = getattr(env.unwrapped, anchor) if position is None else position
    position = np.asarray(position)
    if position.ndim != 1 or len(position) < dims:
        raise ValueError(f"position {anchor!r} has shape {position.shape}; {dims} coordinates are needed")
    return position[:3].astype(float)


def _located(env: gymnasium.Env, name: str) -> Float[np.ndarray, "3"] | None:
    model, data = simulation(env)
    body, site = object_id(model, name), mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, name)
    if body >= 0:
        return data.xpos[body]
    return data.site_xpos[site] if site >= 0 else None
