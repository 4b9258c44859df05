"""Selection of the visible geoms, shared by all renderers."""

import copy

import mujoco
import numpy as np
from jaxtyping import Bool, Int

from perception.cameras import find_id
from perception.simulation import object_id

VISIBLE_GROUPS = 3  # by default, MuJoCo draws the geom groups 0, 1 and 2


def drawn_geoms(model: mujoco.MjModel) -> Bool[np.ndarray, " ngeom"]:
    """Return which geoms are drawn, shape (ngeom,).

    robosuite puts collision geoms in group 0 and visual geoms in group 1. A geom is drawn if its group is 0, 1 or 2, it
    is not fully transparent, and it is not a collision geom with a visual counterpart. Such a collision geom is in
    group 0, on a body other than the world that has visible geoms of group 1 or 2. Models with all geoms in group 0 are
    drawn completely.
    """
    materials = model.geom_matid
    alpha = model.geom_rgba[:, 3]
    if model.nmat:
        # As in mj_ray, a geom with a material is invisible only if both alphas are 0.
        alpha = np.where(materials >= 0, np.maximum(alpha, model.mat_rgba[materials, 3]), alpha)
    visible = (model.geom_group < VISIBLE_GROUPS) & (alpha > 0)
    has_visual = np.zeros(model.nbody, dtype=bool)
    has_visual[model.geom_bodyid[visible & (model.geom_group > 0)]] = True
    has_visual[0] = False  # the geoms of the world body belong to different objects
    return visible & ((model.geom_group > 0) | ~has_visual[model.geom_bodyid])


def object_bodies(model: mujoco.MjModel, name: str) -> Bool[np.ndarray, " nbody"]:
    """Return which bodies are the named body or below it in the tree, shape (nbody,).

    Raises:
        ValueError: Unknown body; the message lists the known ones.
    """
    root = object_id(model, name)
    if root < 0:
        root = find_id(model, mujoco.mjtObj.mjOBJ_BODY, name)  # which raises
    inside = np.arange(model.nbody) == root
    for body in range(root + 1, model.nbody):  # a parent comes before its children
        inside[body] = inside[model.body_parentid[body]]
    return inside


def split_geoms(model: mujoco.MjModel, body: str) -> tuple[Int[np.ndarray, " target"], Int[np.ndarray, " other"]]:
    """Split the ids of the drawn geoms into those of the named body, with the bodies below it, and all others.

    Raises:
        ValueError: Unknown body, or an object without a drawn geom.
    """
    drawn = drawn_geoms(model)
    of_object = object_bodies(model, body)[model.geom_bodyid]
    if not (drawn & of_object).any():
        raise ValueError(f"body {body!r} has no visible geom; give it one in group 0, 1 or 2")
    return np.flatnonzero(drawn & of_object), np.flatnonzero(drawn & ~of_object)


def alone(model: mujoco.MjModel, body: str) -> mujoco.MjModel:
    """Return a copy of the model of which only the named body, with the bodies below it, is drawn.

    Raises:
        ValueError: Unknown body, or an object without a drawn geom.
    """
    copied = copy.copy(model)
    _, others = split_geoms(model, body)
    copied.geom_group[others] = VISIBLE_GROUPS
    return copied
