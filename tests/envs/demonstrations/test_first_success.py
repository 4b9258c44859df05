"""A demonstration ends at its first success, whatever it was recorded with."""

import dataclasses

import numpy as np
import pytest

from assets import path as asset
from envs.demonstrations import Trajectory, first_success, load_demonstrations, save_demonstrations
from envs.push.env import PushEnv
from envs.push.make import SUCCESS_SPEEDS
from envs.push.success import push_success

SHIPPED = [t for grids in (1, 3) for t in load_demonstrations(asset(f"demonstrations/push-slot-{grids}.hdf5"))]
CLOUDS = [120, 133, 133, 113]  # steps after which the puck is slower than 0.1 m/s in the goal set


@pytest.fixture(scope="module")
def goals():
    """The task's goal set, by observation."""
    envs = {name: PushEnv("push-slot", success_speed=speed) for name, speed in SUCCESS_SPEEDS.items()}
    yield {name: push_success(env.goal_reward) for name, env in envs.items()}
    for env in envs.values():
        env.close()


def rows(trajectory: Trajectory, *names: str) -> dict[str, np.ndarray]:
    return {name: trajectory.observations[name] for name in names}


def idle(trajectory: Trajectory, frames: int = 30) -> Trajectory:
    """Nothing moves any more; the last frame in the goal is repeated."""
    longer = {k: np.concatenate([v, np.repeat(v[-1:], frames, axis=0)]) for k, v in trajectory.observations.items()}
    still = np.zeros((frames, 2), np.float32)
    actions = None if trajectory.actions is None else np.concatenate([trajectory.actions, still])
    return dataclasses.replace(trajectory, observations=longer, actions=actions)


def back_and_forth(trajectory: Trajectory, frames: int = 40) -> Trajectory:
    """The puck leaves the goal as it came, and comes back."""
    there = {k: v[-frames:] for k, v in trajectory.observations.items()}
    longer = {k: np.concatenate([v, there[k][::-1], there[k]]) for k, v in trajectory.observations.items()}
    actions = np.concatenate([trajectory.actions, np.zeros((2 * frames, 2), np.float32)])
    return dataclasses.replace(trajectory, observations=longer, actions=actions)


def test_the_state_says_it_as_the_simulation_did(goals):
    for trajectory, clouds in zip(SHIPPED, CLOUDS, strict=True):
        seen = rows(trajectory, "state", "pointcloud", "puck_pose")
        assert first_success(seen, goals["state"]) == trajectory.horizon
        assert first_success(seen, goals["pointcloud"]) == clouds


def test_poses_and_clouds_say_nearly_the_same(goals):
    """At the speed of clouds, since a cloud's file may lack the state."""
    poses = [first_success(rows(t, "puck_pose"), goals["pointcloud"]) for t in SHIPPED]
    assert poses == CLOUDS
    clouds = [first_success(rows(t, "pointcloud"), goals["pointcloud"]) for t in SHIPPED]
    assert all(0 <= late - exact <= 3 for late, exact in zip(clouds, CLOUDS, strict=True))


@pytest.mark.parametrize("names", [("state",), ("pointcloud",), ("pointcloud", "puck_pose")])
@pytest.mark.parametrize("change", [idle, back_and_forth])
def test_what_follows_does_not_count(goals, change, names):
    for trajectory in SHIPPED:
        short, longer = rows(trajectory, *names), rows(change(trajectory), *names)
        end = first_success(short, goals[names[0]])
        assert end is not None and first_success(longer, goals[names[0]]) == end
        cut = {name: values[: end + 1] for name, values in longer.items()}
        assert first_success(cut, goals[names[0]]) == end


@pytest.mark.parametrize("name", ["state", "pointcloud"])
def test_a_puck_in_the_air_is_no_end(goals, name):
    """A hand carries the puck over the goal, and puts it down there ten frames later."""
    trajectory = SHIPPED[0]
    seen = rows(trajectory, name, "puck_pose")
    seen = {k: np.concatenate([v, np.repeat(v[-1:], 20, axis=0)]) for k, v in seen.items()}
    assert first_success(seen, goals[name]) <= trajectory.horizon
    seen["puck_pose"][50 : trajectory.horizon + 10, 2] += 0.05
    assert first_success(seen, goals[name]) == trajectory.horizon + 10


@pytest.mark.parametrize("signal", ["rewards", "dones"])
def test_recorded_rewards_and_dones_count_where_the_state_is_missing(goals, signal):
    trajectory = SHIPPED[0]
    clouds = rows(trajectory, "pointcloud")
    said = {signal: np.zeros(trajectory.horizon)}
    unsolved = first_success(clouds, goals["pointcloud"], **said)
    said[signal][99:] = 1.0
    assert unsolved == 121 and first_success(clouds, goals["pointcloud"], **said) == 100
    assert first_success(rows(trajectory, "state"), goals["state"], **said) == trajectory.horizon
    for most in (0.9, 3.0):  # nearness is no success, on whatever scale
        shaped = {"rewards": np.linspace(0.0, most, trajectory.horizon)}
        assert first_success(clouds, goals["pointcloud"], **shaped) == unsolved


def test_the_start_is_no_end(goals):
    """An episode that starts in the goal set ends with the first step that is in it."""
    state = np.zeros((4, 8))
    assert first_success({"state": state}, goals["state"]) == 1
    state[1] = 1.0
    assert first_success({"state": state}, goals["state"]) == 2
    state[1:] = 1.0
    assert first_success({"state": state}, goals["state"]) is None


def test_recorded_rewards_decide_what_the_goal_set_leaves_open():
    height = {"height": np.array([0.0, 0.2, 0.4, 0.6])}
    undecided = np.array([np.nan, np.nan, 0.0, 1.0])
    for reward, step in (([0, 0, 0], 3), ([1, 1, 1], 1), ([0, 1, 1], 3)):
        assert first_success(height, lambda seen: undecided, rewards=np.array(reward)) == step
    assert first_success(height, lambda seen: seen["height"] > 0.3, rewards=np.ones(3)) == 2
    with pytest.raises(ValueError, match=r"shape \(3,\), not one flag for each of 4 states"):
        first_success(height, lambda seen: seen["height"][1:] > 0.3)


def test_reading_cuts_and_says_so(goals, tmp_path, capsys):
    path = tmp_path / "longer.hdf5"
    whole = load_demonstrations(asset("demonstrations/push-slot-1.hdf5"))[0]
    save_demonstrations(path, [whole, idle(whole), dataclasses.replace(idle(whole), actions=None)], {})
    assert [t.horizon for t in load_demonstrations(path, "state")] == [126, 156, 156]
    assert capsys.readouterr().out == ""
    trajectories = load_demonstrations(path, "state", success=goals["state"])
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: demo_{i}: cut from 156 to 126 steps, at the first success of state observations" for i in (1, 2)
    ]
    for trajectory in trajectories:
        for name, values in whole.observations.items():
            np.testing.assert_array_equal(trajectory.observations[name], values)
    np.testing.assert_array_equal(trajectories[1].actions, whole.actions)
    assert trajectories[2].actions is None
    shipped = asset("demonstrations/push-slot-1.hdf5")
    (clouds,) = load_demonstrations(shipped, "pointcloud", success=goals["pointcloud"], states=True)
    assert clouds.horizon == 120 and len(clouds.actions) == 120 and len(clouds.states) == 121
    assert "cut from 126 to 120 steps" in capsys.readouterr().out


def test_a_demonstration_without_success_stays_whole(goals, tmp_path, capsys):
    path = tmp_path / "short.hdf5"
    save_demonstrations(path, [SHIPPED[0].until(60)], {})
    assert load_demonstrations(path, "state", success=goals["state"])[0].horizon == 60
    assert capsys.readouterr().out == ""
