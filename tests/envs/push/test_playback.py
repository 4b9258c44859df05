"""Playback by states is exact wherever it is done; playback by actions where the recording was made."""

import dataclasses
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import robosuite

from assets import path as asset
from envs.demonstrations import load_demonstrations, save_demonstrations
from envs.push.env import PushEnv
from envs.push.placement import puck_addresses
from envs.push.playback import (
    describe_environment,
    get_simulator_state,
    play_actions,
    play_states,
    set_simulator_state,
)
from envs.record import demonstrate

ROOT = Path(__file__).parents[3]
SHIPPED = {grids: asset("demonstrations", f"push-slot-{grids}.hdf5") for grids in (1, 2, 3)}
PLAYED = """
import json, sys
import numpy as np
from envs.demonstrations import load_demonstrations
from envs.push.env import PushEnv
from envs.push.playback import play_actions, play_states
env, errors = PushEnv("push-slot", grids=3, success_speed=0.02), {"play_states": 0.0, "play_actions": 0.0}
for demonstration in load_demonstrations(sys.argv[1], states=True):
    for play in (play_states, play_actions):
        error = np.abs(np.array(list(play(env, demonstration))) - demonstration.observations["state"]).max()
        errors[play.__name__] = max(errors[play.__name__], float(error))
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def slot():
    env = PushEnv("push-slot", grids=3, success_speed=0.02)
    yield env
    env.close()


@pytest.mark.parametrize("grids", SHIPPED)
def test_shipped_states_are_the_recording(slot, grids):
    demonstrations = load_demonstrations(SHIPPED[grids], states=True)
    assert [t.grid for t in demonstrations] == list(range(grids))
    for demonstration in demonstrations:
        assert 100 <= demonstration.horizon <= slot.horizon
        for step, observation in enumerate(play_states(slot, demonstration)):
            np.testing.assert_array_equal(observation, demonstration.observations["state"][step])
            np.testing.assert_array_equal(slot.puck_pose, demonstration.observations["puck_pose"][step])
            assert slot._info()["is_success"] == (step == demonstration.horizon)
        assert step == demonstration.horizon


@pytest.mark.skipif(platform.machine() != "x86_64", reason="OpenBLAS has other kernels")
def test_states_are_exact_on_another_processor_and_actions_are_not():
    """OpenBLAS is told to take the kernels of processors that most of today's can stand in for."""
    errors = {}
    for core in ("Prescott", "Haswell"):
        done = subprocess.run(
            [sys.executable, "-c", PLAYED, SHIPPED[1]],
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_CORETYPE": core, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        errors[core] = json.loads(done.stdout.splitlines()[-1])
    assert [error["play_states"] for error in errors.values()] == [0.0, 0.0]
    assert max(error["play_actions"] for error in errors.values()) > 1e-4


def test_a_fresh_recording_replays_by_its_actions(slot, tmp_path):
    """From its first state, and, where none was kept, from its start."""
    save_demonstrations(tmp_path / "a.hdf5", [demonstrate(slot, 1, 5)], {})
    (recorded,) = load_demonstrations(tmp_path / "a.hdf5", states=True)
    for demonstration, allowed in ((recorded, 0.0), (dataclasses.replace(recorded, states=None), 1e-3)):
        *_, last = played = list(play_actions(slot, demonstration))
        error = np.abs(np.array(played) - demonstration.observations["state"])
        assert error[:, [0, 1, 4, 5]].max() <= allowed  # [m]
        assert slot.goal_reward(last[4:8], np.zeros(4)) == 1


def test_the_goal_of_the_plane_is_played_back_too():
    env, other = PushEnv("push-plane"), PushEnv("push-plane")
    demonstration = demonstrate(env, seed=12)
    other.reset(seed=99)
    np.testing.assert_allclose(list(play_states(other, demonstration)), demonstration.observations["state"], atol=1e-7)
    np.testing.assert_allclose(other.goal_position, env.goal_position, atol=1e-7)


@pytest.mark.parametrize("source", ["shipped", "recorded"])
def test_robosuite_plays_it_back(slot, tmp_path, source):
    """As its playback_demonstrations_from_hdf5 and robomimic's playback_dataset do, of the file alone."""
    path = SHIPPED[1]
    if source == "recorded":
        path = tmp_path / "a.hdf5"
        demonstration = demonstrate(slot, 0, 5)
        PushEnv("push-plane").close()  # the model is the demonstration's, not the last that was built
        save_demonstrations(path, [demonstration], describe_environment(slot))
    with h5py.File(path) as file:
        made = json.loads(file["data"].attrs["env_args"])
        demo = file["data/demo_0"]
        states, model, poses = demo["states"][()], demo.attrs["model_file"], demo["obs/puck_pose"][()]
        assert len(states) == len(demo["actions"]) == demo.attrs["num_samples"]  # as robomimic wants it
        states, poses = [*states, demo["last_state"][()]], [*poses, demo["next_obs/puck_pose"][-1]]
    assert made["type"] == 1 and str(ROOT) not in model and sys.prefix not in model
    env = robosuite.make(made["env_name"], **made["env_kwargs"], ignore_done=True)
    env.reset()
    env.reset_from_xml_string(env.edit_model_xml(model))
    env.sim.reset()
    address, _ = puck_addresses(env.sim.model._model)
    successes = []
    for state, pose in zip(states, poses, strict=True):
        env.sim.set_state_from_flattened(state)
        env.sim.forward()
        np.testing.assert_array_equal(env.sim.data.qpos[address : address + 7], pose)
        successes.append(env._check_success())
    assert successes[-1] and not any(successes[:-1])
    env.close()


def test_the_state_is_robosuites(slot):
    slot.reset(seed=3)
    for _ in range(3):
        slot.step(np.array([1.0, 0.5]))
    np.testing.assert_array_equal(get_simulator_state(slot), slot.robosuite.sim.get_state().flatten())


def test_what_cannot_be_played_is_refused(slot):
    demonstration = demonstrate(slot, 0, 5)
    assert demonstration is not None
    cases = {
        "no states were recorded": (play_states, dataclasses.replace(demonstration, states=None)),
        "no actions were recorded": (play_actions, dataclasses.replace(demonstration, actions=None)),
        "states: a row has 27 numbers, but the simulator of push-slot has 28": (
            play_states,
            dataclasses.replace(demonstration, states=demonstration.states[:, 1:]),
        ),
    }
    for message, (play, broken) in cases.items():
        with pytest.raises(ValueError, match=message):
            list(play(slot, broken))


def test_nothing_of_before_is_left_in_a_state(slot):
    """Neither warm starts of the solver nor commands of the controller."""
    demonstration = demonstrate(slot, 0, 5)
    futures = []
    for seed in (1, 2):
        slot.reset(seed=seed)
        for _ in range(seed):
            slot.step(np.ones(2))
        set_simulator_state(slot, demonstration.states[60])
        futures.append([slot.step(action)[0] for action in demonstration.actions[60:70]])
    np.testing.assert_array_equal(*futures)
