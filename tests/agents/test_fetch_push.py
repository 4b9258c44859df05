"""The worked example FetchPush: geometry of the wall, observations, and the demonstration."""

import mujoco
import numpy as np
import pytest
import torch

import assets
from assets.examples.fetch_push.demonstrate import Pusher
from assets.examples.fetch_push.environment import PushAnywhere, PushAround
from assets.examples.fetch_push.tasks import HERE, STEPS, make_push, observe_cloud, push_around, state
from envs.demonstrations import read_demonstrations
from shaping.value import ValueEstimator

CUBE = 0.025  # half of its edge [m]


@pytest.fixture(scope="module")
def env():
    return make_push(PushAround, STEPS)


def positions(env):
    """Return the positions of cube and hand, xy [m]."""
    data = env.unwrapped.data
    return data.body("object0").xpos[:2].copy(), data.site("robot0:grip").xpos[:2].copy()


def move(env, target, steps):
    """Move the hand in a straight line."""
    for _ in range(steps):
        env.step(np.clip((np.array(target) - positions(env)[1]) / 0.02, -1, 1))


def test_the_wall_lies_between_starts_and_goals(env):
    env.reset(seed=0)
    model, data = env.unwrapped.model, env.unwrapped.data
    low, high = (data.geom("wall").xpos + sign * model.geom("wall").size for sign in (-1, 1))
    start, goals = np.array(PushAround.start), np.array(PushAround.goals)
    assert start[1, 1] + CUBE < low[1] and high[1] < goals[0, 1] - CUBE
    assert goals[0, 1] - (low[1] - CUBE) > 0.05 + 0.05  # a cube that rests against the wall is far from every goal
    assert low[0] <= 1.3 - 0.25 and high[0] > max(start[1, 0], goals[1, 0]) + 2 * CUBE  # from the table's near edge on
    palm = data.body("robot0:gripper_link").id
    vertices = [data.geom(i).xpos[2] - model.geom_aabb[i, 3:].max() for i in np.flatnonzero(model.geom_bodyid == palm)]
    assert 2 * CUBE + 0.4 < high[2] < min(vertices)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        assert (start[0] <= positions(env)[0]).all() and (positions(env)[0] <= start[1]).all()
        assert (goals[0] <= observation["desired_goal"][:2]).all() and (
            observation["desired_goal"][:2] <= goals[1]
        ).all()


@pytest.mark.parametrize("aside", [-0.02, 0.0, 0.02])
def test_a_straight_push_ends_at_the_wall(env, aside):
    env.reset(seed=1)
    x = positions(env)[0][0] + aside
    move(env, (1.36, 0.62), 8)
    move(env, (x, 0.62), 12)
    for _ in range(60):
        _, _, _, _, info = env.step(np.array([0.0, 1.0]))
        assert not info["is_success"]
    cube, hand = positions(env)
    assert 0.77 < cube[1] < 0.80 and hand[1] < 0.82 and env.unwrapped.data.body("object0").xpos[2] < 0.43


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_controller_pushes_the_cube_around_the_wall(env, seed):
    observation, _ = env.reset(seed=seed)
    pusher, ended = Pusher(observation["desired_goal"][:2]), False
    while not ended:
        *_, truncated, info = env.step(pusher.act(*positions(env)))
        ended = truncated or info["is_success"]
    assert info["is_success"] and positions(env)[0][1] > 0.86


def test_the_demonstration_plays_back_to_success(env):
    (shown,) = read_demonstrations(HERE / "push-around.hdf5")
    task = push_around.make(obs="state", grids=1, render_mode=None)
    observation, _ = task.reset(seed=shown.seed)
    np.testing.assert_allclose(observation, shown.observations["state"][0], atol=1e-5)
    for action in shown.actions:
        *_, terminated, _, info = task.step(action)
        if terminated:
            break
    assert info["is_success"] and shown.horizon == 96 < STEPS
    assert (np.linalg.norm(shown.observations["state"][:80, 4:6], axis=1) > 0.05).all()  # it succeeds at its end
    assert np.linalg.norm(shown.observations["pointcloud"][-1, :, 2:].mean(axis=0)) < 0.05


def test_observations_are_positions_and_velocities_of_the_simulator():
    env = observe_cloud(make_push(PushAround, STEPS))
    env.reset(seed=4)
    base = env.unwrapped
    move(env, (1.25, 0.70), 25)  # into the cube
    cube, hand = positions(env)
    cloud, *_ = env.step(np.array([-1.0, 0.3]))
    velocity = np.zeros(6)
    site = base.model.site("robot0:grip").id
    mujoco.mj_objectVelocity(base.model, base.data, mujoco.mjtObj.mjOBJ_SITE, site, velocity, 0)
    moved = base.data.joint("object0:joint").qvel[:2]
    assert np.linalg.norm(positions(env)[0] - cube) > 0.005 < np.linalg.norm(velocity[3:5])
    cube, hand = positions(env)
    expected = np.concatenate([cube - hand, moved - velocity[3:5], cube - base.goal[:2], moved])
    np.testing.assert_allclose(state(base._get_obs()), expected, atol=1e-5)
    assert cloud.shape == (20, 4)
    assert np.abs(cloud[:, :2] + hand - cube).max() < CUBE * 2**0.5 + 1e-3
    np.testing.assert_allclose(cloud[:, 2:] + base.goal[:2], cloud[:, :2] + hand, atol=1e-6)
    env.close()


def test_the_hand_keeps_its_height_and_the_play_has_no_wall():
    env = make_push(PushAnywhere, 50)
    data, rng = env.unwrapped.data, np.random.default_rng(0)
    assert "wall" not in [env.unwrapped.model.geom(i).name for i in range(env.unwrapped.model.ngeom)]
    for seed in range(4):
        observation, _ = env.reset(seed=seed)
        cube, hand = positions(env)
        assert np.abs(cube - hand).max() <= 0.1 and np.linalg.norm(cube - hand) >= 0.06
        assert np.abs(observation["desired_goal"][:2] - cube).max() <= 0.15
        for _ in range(15):
            env.step(rng.uniform(-1, 1, 2))
            assert abs(data.site("robot0:grip").xpos[2] - 0.419) < 0.005


def test_the_prior_of_the_puck_acts_here_too():
    """Its observations mean the same, and its actions nearly."""
    estimator = ValueEstimator.load(assets.path("estimators/push-plane-state.pt"), observation="state")
    play = push_around.make_play(obs="state")
    reached = 0
    for seed in range(5):
        observation, _ = play.reset(seed=seed)
        ended = False
        while not ended:
            action = estimator.act(torch.from_numpy(observation)[None]).detach().numpy()[0]
            observation, _, terminated, truncated, _ = play.step(action)
            ended = terminated or truncated
        reached += terminated
    assert reached >= 4
