"""Which geoms can be seen: the same set for every renderer."""

import mujoco
import numpy as np
from jaxtyping import Bool, Int

from perception.cameras import find_id

VISIBLE_GROUPS = 3  # MuJoCo draws the geom groups 0, 1 and 2 unless told otherwise


def drawn_geoms(model: mujoco.MjModel) -> Bool[np.ndarray, " ngeom"]:
    """Tell which geoms are drawn.

    robosuite puts collision geoms in group 0 and visual geoms in group 1. A geom is drawn if its group is 0, 1 or 2,
    it is not fully transparent, and it is no collision geom with a visual twin: a geom of group 0 on a body, other than
    the world, that has geoms of group 1 or 2. Plain models, with everything in group 0, are drawn whole.
    """
    materials = model.geom_matid
    alpha = model.geom_rgba[:, 3]
    if model.nmat:
        # The rule of mj_ray: with a material, both alphas must be 0 for the geom to be invisible.
        alpha = np.where(materials >= 0, np.maximum(alpha, model.mat_rgba[materials, 3]), alpha)
    visible = (model.geom_group < VISIBLE_GROUPS) & (alpha > 0)
    has_visual = np.zeros(model.nbody, dtype=bool)
    has_visual[model.geom_bodyid[visible & (model.geom_group > 0)]] = True
    has_visual[0] = False  # the world's geoms have nothing to do with each other
    return visible & ((model.geom_group > 0) | ~has_visual[model.geom_bodyid])


def split_geoms(model: mujoco.MjModel, body: str) -> tuple[Int[np.ndarray, " target"], Int[np.ndarray, " other"]]:
    """Split the drawn geoms into those of the named body and all others.

    Raises:
        ValueError: Unknown body, or one with nothing to draw.
    """
    drawn = drawn_geoms(model)
    of_body = model.geom_bodyid == find_id(model, mujoco.mjtObj.mjOBJ_BODY, body)
    if not (drawn & of_body).any():
        raise ValueError(f"body {body!r} has no visible geom; give it one in group 0, 1 or 2")
    return np.flatnonzero(drawn & of_body), np.flatnonzero(drawn & ~of_body)
