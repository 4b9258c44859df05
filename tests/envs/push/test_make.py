"""Gymnasium's description of an environment, JSON included, makes the same environment again."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_match import check_environments_match

import envs  # noqa: F401 (registers the tasks)

PERCEPTION = {
    "cameras": ["overhead", "oblique"],
    "num_points": 12,
    "width": 64,
    "height": 48,
    "workspace": [[-0.5, -0.5, 0.7], [0.5, 0.5, 1.0]],
}
SETTINGS = {
    "states": ("PushSlot-v0", {"grids": 3, "horizon": 5, "success_speed": 0.05, "camera": "oblique"}),
    "another puck": ("PushSlot-v0", {"puck": {"shape": "box", "friction": 0.1}}),
    "states of the plane": ("PushPlane-v0", {"goal_speed": 0.02}),
    "clouds": ("PushSlot-v0", {"obs": "pointcloud"}),
    "clouds of the plane": ("PushPlane-v0", {"obs": "pointcloud", "max_episode_steps": 4}),
    "clouds of two cameras": ("PushSlot-v0", {"obs": "pointcloud", "perception": PERCEPTION}),
    "tuples": ("PushSlot-v0", {"obs": "pointcloud", "perception": {"cameras": ("oblique",)}}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_description_makes_the_same_environment(name):
    task, settings = SETTINGS[name]
    env = gym.make(task, **settings)
    written = env.spec.to_json()
    for again in (gym.make(EnvSpec.from_json(written)), gym.make(env.spec)):
        assert str(again) == str(env) and again.spec.to_json() == written
        check_environments_match(env, again, num_steps=6, seed=3)
        again.close()
    env.close()


def test_a_vector_is_made_from_a_description():
    env = gym.make("PushSlot-v0", obs="pointcloud", perception=PERCEPTION)
    vector = gym.make_vec(EnvSpec.from_json(env.spec.to_json()), num_envs=2, vectorization_mode="sync")
    observations, _ = vector.reset(seed=[3, 4])
    np.testing.assert_array_equal(observations[0], env.reset(seed=3)[0])
    vector.close()
    env.close()
