"""Images with colours and depth: what they show, in which units, of which state."""

import copy
import pickle

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import envs  # noqa: F401 (registers the tasks)
from envs.push.playback import get_simulator_state, set_simulator_state
from perception.cameras import camera_to_world
from perception.rendering import make_renderer
from perception.rendering.colour import ColourRenderer
from perception.rgbd import RGBDObservation


@pytest.fixture(scope="module")
def env():
    env = gymnasium.make("PushSlot-v0", obs="rgbd", grids=3)
    yield env
    env.close()


def wrapper(env) -> RGBDObservation:
    while not isinstance(env, RGBDObservation):
        env = env.env
    return env


def test_an_image_has_colours_and_metres(env):
    image, info = env.reset(seed=0)
    assert image.shape == (4, 48, 48) and image.dtype == np.float32 and "puck_visible" not in info
    for _ in range(5):
        assert image in env.observation_space and 0.5 < image[:3].max() <= 1.0
        assert image[3].min() > 0.7 and image[3].max() == 2.0  # the nearest edge of the table, and the room beyond
        image, *_ = env.step(env.action_space.sample())


def test_the_wrapper_keeps_gymnasiums_contract(env):
    with pytest.warns(UserWarning, match="different from the unwrapped version"):
        check_env(wrapper(env), skip_render_check=True)


@pytest.mark.parametrize("size", [(48, 48), (64, 40), (40, 56)])
@pytest.mark.parametrize("camera", ["overhead", "oblique"])
def test_the_puck_is_red_where_it_is_and_as_far_as_it_is(env, camera, size):
    """Its pixels, by the renderer of masks, are those that are redder than all others; so is their depth."""
    model, data = env.unwrapped.model, env.unwrapped.data
    renderers = ColourRenderer(model, camera, *size), make_renderer("gl", model, camera, "puck_main", *size)
    for grid in range(3):
        env.reset(seed=grid, options={"grid": grid})
        (colour, depth), (expected, mask) = (renderer.render(data) for renderer in renderers)
        assert depth.shape == size[::-1] and mask.any()
        red = colour[..., 0] - colour[..., 1:].max(axis=-1).astype(float)
        assert red[mask].mean() > red[~mask].mean() + 40 and mask[np.unravel_index(red.argmax(), red.shape)]
        pose = np.linalg.inv(camera_to_world(model, data, camera))
        z = (pose @ np.append(env.unwrapped.puck_position, 1.0))[2]
        assert abs(depth[mask].mean() - z) < 0.04
        np.testing.assert_allclose(depth[mask], expected[mask], atol=0.04)
    for renderer in renderers:
        renderer.close()


def test_the_image_follows_the_state_of_the_simulation(env):
    """A recorded state gives its image again, in another environment too; a puck elsewhere gives another one."""
    first, _ = env.reset(seed=1)
    state = get_simulator_state(env)
    moved = first
    for _ in range(10):
        moved, *_ = env.step(np.ones(2))
    assert np.abs(moved - first).max() > 0.1
    other = gymnasium.make("PushSlot-v0", obs="rgbd")
    other.reset(seed=7)
    for each in (env, other):
        set_simulator_state(each, state)
        np.testing.assert_allclose(wrapper(each).observe(), first, atol=1e-6)
    other.close()


def test_copies_see_the_same_and_go_on(env):
    env.reset(seed=2)
    env.step(np.ones(2))
    copies = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    seen = env.step(-np.ones(2))[0]
    for each in copies:
        np.testing.assert_array_equal(each.step(-np.ones(2))[0], seen)
        each.close()


def test_a_description_holds_what_the_wrapper_was_given():
    env = RGBDObservation(gymnasium.make("PushSlot-v0"), "oblique", width=20, height=30, max_depth=1.5)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec == env.spec and again.observation_space.shape == (4, 30, 20)
    np.testing.assert_array_equal(again.reset(seed=1)[0], env.reset(seed=1)[0])
    assert again.observation_space.high.max() == 1.5
    for each in (env, again):
        each.close()
        each.close()


class Rebuilt(gymnasium.Env):
    """A scene without a robot that is built anew at each reset."""

    observation_space = action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, build):
        self.build = build
        self.model, self.data = build()

    def reset(self, *, seed=None, options=None):
        self.model, self.data = self.build()
        return np.zeros(2, np.float32), {}


def test_a_rebuilt_model_is_noticed(scene):
    env = RGBDObservation(Rebuilt(scene))
    first, _ = env.reset()
    again, _ = env.reset()
    np.testing.assert_array_equal(first, again)
    assert env._model is env.unwrapped.model
    env.close()


def test_a_model_with_all_geoms_in_one_group_is_drawn():
    xml = "<mujoco><worldbody><camera name='top' pos='0 0 1'/><light pos='0 0 2'/><geom type='box' size='.1 .1 .1'/>"
    model = mujoco.MjModel.from_xml_string(f"{xml}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = ColourRenderer(model, "top", 32, 32)
    _, depth = renderer.render(data)
    assert depth[16, 16] == pytest.approx(0.9, abs=1e-3) and depth[0, 0] > 2
    renderer.close()


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"camera": "side"}, "unknown camera 'side'; the model has"),
        ({"width": 0}, "images of 0 × 48 pixels"),
        ({"max_depth": np.inf}, "max_depth is inf; give a finite number"),
        ({"max_depth": 0}, "max_depth is 0"),
    ],
)
def test_bad_settings_are_refused_at_once(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        gymnasium.make("PushSlot-v0", obs="rgbd", perception=settings)
    assert "\n" not in str(error.value)
