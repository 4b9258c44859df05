"""Noise has the statistics that are asked for, is drawn once or in every frame, and leaves everything else alone."""

import copy
import json

import gymnasium
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import envs  # noqa: F401 (registers the tasks)
from perception import Noise
from perception.noise import NoiseSource, checked_noise, noisy_depth, pose_error

STRONG = Noise(depth=0.01, dropped=0.3, position=0.02, rotation=2.0)
CAMERAS = ("overhead", "oblique")


def make(noise=None, **settings):
    perception = {"cameras": CAMERAS} if noise is None else {"cameras": CAMERAS, "noise": noise}
    return gymnasium.make("PushSlot-v0", obs="pointcloud", perception=perception, **settings)


def frames(env, seed, steps=3) -> np.ndarray:
    env.action_space.seed(0)
    rows = [env.reset(seed=seed)[0]]
    return np.stack(rows + [env.step(env.action_space.sample())[0] for _ in range(steps)])


def test_the_error_of_the_depth_grows_with_its_square():
    z = np.linspace(0.3, 3.0, 400).astype(np.float32).reshape(20, 20)
    rng, everything = np.random.default_rng(0), np.ones((20, 20), bool)
    errors = np.stack([noisy_depth(z, everything, Noise(depth=0.01), rng) - z for _ in range(2000)]) / z**2
    assert np.abs(errors.mean(axis=0)).max() < 0.001  # 4.5 standard errors
    np.testing.assert_allclose(errors.std(axis=0), 0.01, rtol=0.08)
    assert abs(np.corrcoef(errors[:, 3, 4], errors[:, 3, 5])[0, 1]) < 0.1


def test_pixels_are_lost_at_random_and_outside_of_the_mask_nothing_changes():
    depth, mask = np.full((100, 100), 1.2, np.float32), np.zeros((100, 100), bool)
    mask[:50] = True
    lost = np.isnan([noisy_depth(depth, mask, Noise(dropped=0.3), np.random.default_rng(i)) for i in range(50)])
    assert not lost[:, 50:].any()
    assert lost[:, :50].mean() == pytest.approx(0.3, abs=0.005)
    assert lost[:, :50].mean(axis=0).max() < 0.75, "no pixel is always lost"
    everything = noisy_depth(depth, mask, Noise(dropped=1.0), np.random.default_rng(0))
    assert np.isnan(everything[mask]).all()


def test_errors_of_the_pose_have_the_standard_deviations_and_are_rigid():
    rng = np.random.default_rng(0)
    errors = np.stack([pose_error(Noise(position=0.02, rotation=3.0), rng) for _ in range(4000)])
    np.testing.assert_allclose(errors[:, :3, 3].std(axis=0), 0.02, rtol=0.05)
    angles = Rotation.from_matrix(errors[:, :3, :3]).as_rotvec(degrees=True)
    np.testing.assert_allclose(angles.std(axis=0), 3.0, rtol=0.05)
    np.testing.assert_allclose(
        errors[:, :3, :3] @ errors[:, :3, :3].transpose(0, 2, 1), np.eye(3)[None].repeat(4000, 0), atol=1e-12
    )
    np.testing.assert_array_equal(errors[:, 3], [[0, 0, 0, 1]] * 4000)


def test_the_error_of_a_pose_is_that_of_the_episode_and_of_the_camera():
    source = NoiseSource(STRONG, CAMERAS)
    source.reset(seed=3)
    first = {camera: source.pose(camera, np.eye(4)) for camera in CAMERAS}
    assert np.abs(first["overhead"] - first["oblique"]).max() > 1e-3
    source.depth(np.ones((4, 4), np.float32), np.ones((4, 4), bool))
    np.testing.assert_array_equal(source.pose("overhead", np.eye(4)), first["overhead"])
    source.reset(seed=None)
    assert np.abs(source.pose("overhead", np.eye(4)) - first["overhead"]).max() > 1e-3
    source.reset(seed=3)
    np.testing.assert_array_equal(source.pose("oblique", np.eye(4)), first["oblique"])


def test_a_calibration_error_moves_the_points_of_an_episode_together():
    """The puck rests, so what remains is the same error in every frame."""
    clean, noisy = make(), make({"position": 0.02})
    offsets = []
    for seed in (0, 1):
        shift = []
        for env in (clean, noisy):
            env.reset(seed=seed)
            shift.append([env.step(np.zeros(2, np.float32))[0][:, 2:].mean(axis=0) for _ in range(3)])
        moved = np.array(shift[1]) - np.array(shift[0])
        np.testing.assert_allclose(moved, moved[:1].repeat(3, axis=0), atol=1e-3)
        offsets.append(moved[0])
    assert np.linalg.norm(offsets[0]) > 1e-3 and np.linalg.norm(offsets[0] - offsets[1]) > 1e-3
    clean.close(), noisy.close()


def test_noise_of_nothing_and_no_noise_are_the_same_frames():
    without, nothing = make(), make(Noise())
    for seed in (0, 5):
        np.testing.assert_array_equal(frames(without, seed), frames(nothing, seed))
    assert "noise" not in without.get_wrapper_attr("get_state")()
    without.close(), nothing.close()


def test_starts_do_not_depend_on_the_noise_and_the_noise_on_the_seed_alone():
    clean, noisy, other = make(), make(STRONG), make({"dropped": 0.3, "depth": 0.01, "position": 0.02, "rotation": 2.0})
    first = frames(noisy, 7)
    for env in (clean, noisy):
        env.reset(seed=7)
        env.reset()  # whose start is the next of the generator
    np.testing.assert_array_equal(clean.unwrapped.puck_pose, noisy.unwrapped.puck_pose)
    np.testing.assert_array_equal(first, frames(noisy, 7))
    np.testing.assert_array_equal(first, frames(other, 7))
    assert np.abs(first - frames(clean, 7)).max() > 1e-3
    for env in (clean, noisy, other):
        env.close()


def test_the_state_holds_the_noise():
    env, other = make(STRONG), make(STRONG)
    env.reset(seed=0), other.reset(seed=1)
    base, state = env.unwrapped.get_state(), json.loads(json.dumps(env.get_wrapper_attr("get_state")()))
    expected = [env.step(np.ones(2, np.float32))[0] for _ in range(2)] + [env.reset()[0]]
    other.unwrapped.set_state(base)
    other.get_wrapper_attr("set_state")(state)
    found = [other.step(np.ones(2, np.float32))[0] for _ in range(2)] + [other.reset()[0]]
    np.testing.assert_array_equal(found, expected)
    copied = copy.deepcopy(env)
    np.testing.assert_array_equal(copied.step(np.zeros(2, np.float32))[0], env.step(np.zeros(2, np.float32))[0])
    for made in (env, other, copied):
        made.close()


def test_a_frame_without_depth_shows_no_puck():
    env = make({"dropped": 1.0})
    _, info = env.reset(seed=0)
    assert info["puck_visible"] is False
    env.close()


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": -1}, r"noise: depth is -1; it must lie in \[0, 0.1\] m"),
        ({"depth": float("nan")}, r"noise: depth is nan"),
        ({"dropped": 1.5}, r"noise: dropped is 1.5; it must lie in \[0, 1\]$"),
        ({"position": "far"}, r"noise: position is 'far'; it must lie in \[0, 0.5\] m"),
        ({"rotation": 90}, r"noise: rotation is 90; it must lie in \[0, 45\] degrees"),
        ({"blur": 1}, "give a Noise, or a mapping with any of depth, dropped, position, rotation"),
        (0.1, "noise is 0.1; give a Noise"),
    ],
)
def test_bad_noise_is_refused_at_once(settings, message):
    with pytest.raises(ValueError, match=message):
        checked_noise(settings)
