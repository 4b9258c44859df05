"""The renderers, MuJoCo's rays and its own renderer see the same puck, in random states of the task, behind the arm."""

import copy

import mujoco
import numpy as np
import pytest

from envs.opengl import SLICES
from envs.push.env import PushEnv
from envs.push.geometry import CAMERAS, WORKSPACE
from envs.push.placement import puck_addresses
from perception.cameras import MUJOCO_TO_OPENCV
from perception.rendering import make_renderer
from perception.rendering.geoms import drawn_geoms

REACHABLE = 0.85 * WORKSPACE  # the arm reaches all of it, and a little further
SIZE = 128  # pixels, as in the observation
PUCK, WORLD, ARM, NEVER = 1, 2, 3, 5  # geom groups of `grouped`


@pytest.fixture(scope="module")
def env():
    made = PushEnv("push-slot", grids=3)
    yield made
    made.close()


def disturb(env, rng, camera) -> None:
    """Put the puck anywhere, a little tilted and lifted, and the tip beside it, more often towards the camera."""
    puck = rng.uniform(*REACHABLE)
    angle = np.arctan2(*(CAMERAS[camera]["position"][:2] - puck)[::-1]) + rng.normal(0, 1.2)
    tip = np.clip(puck + rng.uniform(0.04, 0.12) * np.array([np.cos(angle), np.sin(angle)]), *REACHABLE)
    env.robosuite.reset_to(puck, tip, np.zeros(4))  # which lets them overlap
    address, _ = puck_addresses(env.model)
    env.data.qpos[:7] += rng.normal(0, 0.05, 7)
    env.data.qpos[address + 2] += rng.uniform(0, 0.03)
    quaternion = np.array([1.0, *rng.normal(0, [0.05, 0.05, 1.0])])
    env.data.qpos[address + 3 : address + 7] = quaternion / np.linalg.norm(quaternion)
    mujoco.mj_forward(env.model, env.data)


def grouped(model) -> mujoco.MjModel:
    """Copy a model, its drawn geoms grouped by what they belong to."""
    model = copy.deepcopy(model)
    puck = model.geom_bodyid == model.body("puck_main").id
    arm = model.body_rootid[model.geom_bodyid] == model.body("robot0_base").id
    group = np.where(puck, PUCK, np.where(arm, ARM, WORLD))
    model.geom_group[:] = np.where(drawn_geoms(model), group, NEVER)
    return model


class Rays:
    """One `mj_ray` at a time against every drawn geom, from a camera of a `grouped` model."""

    def __init__(self, model, camera, intrinsics) -> None:
        self.model, self.camera, self.intrinsics = model, model.camera(camera).id, intrinsics
        self.drawn = np.ones(6, np.uint8)
        self.drawn[NEVER] = 0

    def look(self, data, pixels):
        """Tell of each pixel (row, column; halves are centres) whether it sees the puck, and the depth there [m]."""
        image = np.stack([*(pixels[:, ::-1] - self.intrinsics.center).T, np.full(len(pixels), self.intrinsics.focal)])
        rotation = data.cam_xmat[self.camera].reshape(3, 3) * MUJOCO_TO_OPENCV
        rays = (rotation @ image).T / self.intrinsics.focal  # unit length along the optical axis
        eye, geom, hits = data.cam_xpos[self.camera], np.full(1, -1, np.int32), np.full(len(pixels), -1)
        depths = np.zeros(len(pixels))
        for i, ray in enumerate(rays):
            depths[i] = mujoco.mj_ray(self.model, data, eye, ray, self.drawn, 1, -1, geom)
            hits[i] = geom[0]
        return (hits >= 0) & (self.model.geom_group[hits] == PUCK), depths

    def on_edge(self, data, row, column) -> bool:
        """Tell whether what is seen changes within a tenth of a pixel of a pixel's centre."""
        around = np.array([(row + 0.5 + y, column + 0.5 + x) for y in (-0.1, 0.0, 0.1) for x in (-0.1, 0.0, 0.1)])
        return len(set(self.look(data, around)[0])) == 2


def widened(mask):
    """Add the neighbours of a mask's pixels."""
    padded = np.pad(mask, 1)
    return mask | padded[2:, 1:-1] | padded[:-2, 1:-1] | padded[1:-1, 2:] | padded[1:-1, :-2]


@pytest.mark.slow
@pytest.mark.parametrize("camera", CAMERAS)
def test_five_hundred_states(env, camera):
    """Of all pixels that see the puck, or lie beside one that does, in 500 states, the arm before the puck in many.

    Cast rays are `mj_ray`'s, pixel by pixel. OpenGL's depth is within 1 mm of theirs and its mask the same, but for the
    few pixels whose centre lies within a tenth of a pixel of the edge of the puck or of what hides it: it draws prisms
    in place of cylinders and rounds corners to fractions of a pixel, and where a ray grazes a side, that is much depth.
    """
    rng = np.random.default_rng(0)
    ray, gl = (make_renderer(name, env.model, camera, width=SIZE, height=SIZE) for name in ("ray", "gl"))
    model = grouped(env.model)
    rays = Rays(model, camera, ray.intrinsics)
    armless = copy.deepcopy(model)
    armless.geom_group[model.geom_group == ARM] = NEVER
    free = make_renderer("ray", armless, camera, width=SIZE, height=SIZE)
    seen, differing, apart, hidden_in_part = 0, [], [], 0
    for _ in range(500):
        disturb(env, rng, camera)
        (ray_depth, ray_mask), (gl_depth, gl_mask) = ray.render(env.data), gl.render(env.data)
        pixels = np.argwhere(widened(ray_mask | gl_mask))
        sees, depths = rays.look(env.data, pixels + 0.5)
        np.testing.assert_array_equal(ray_mask[tuple(pixels.T)], sees)
        np.testing.assert_allclose(ray_depth[tuple(pixels[sees].T)], depths[sees], atol=1e-6)
        both = ray_mask & gl_mask
        error = np.abs(ray_depth - gl_depth) * both
        assert all(rays.on_edge(env.data, *pixel) for pixel in np.argwhere((ray_mask ^ gl_mask) | (error > 1e-3)))
        seen += gl_mask.sum()
        differing.append((ray_mask ^ gl_mask).sum())
        apart.append((error > 1e-3).sum())
        hidden_in_part += 0 < ray_mask.sum() < free.render(env.data)[1].sum()
    gl.close()
    assert seen > 30_000 and hidden_in_part > 150
    assert sum(differing) < 0.002 * seen and max(differing) <= 2
    assert sum(apart) < 0.0002 * seen


@pytest.mark.parametrize("camera", CAMERAS)
def test_opengl_is_mujocos_own_renderer(env, camera):
    """Mask and depth are `mujoco.Renderer`'s, once it draws the same geoms, as round, with one sample a pixel."""
    rng = np.random.default_rng(1)
    model = grouped(env.model)
    model.vis.quality.offsamples, model.vis.quality.numslices = 0, SLICES
    gl, reference = make_renderer("gl", env.model, camera, width=SIZE, height=SIZE), mujoco.Renderer(model, SIZE, SIZE)
    option = mujoco.MjvOption()
    option.geomgroup[[PUCK, WORLD, ARM]], option.sitegroup[:] = 1, 0
    for _ in range(15):
        disturb(env, rng, camera)
        depth, mask = gl.render(env.data)
        reference.update_scene(env.data, camera, option)
        reference.enable_segmentation_rendering()
        geom = reference.render()[..., 0]
        reference.disable_segmentation_rendering()
        reference.enable_depth_rendering()
        expected = reference.render()
        reference.disable_depth_rendering()
        np.testing.assert_array_equal(mask, (geom >= 0) & (model.geom_group[geom] == PUCK))
        np.testing.assert_allclose(depth, expected, rtol=2e-5)
    gl.close()
    reference.close()
