"""Playback of demonstrations by recorded states or by recorded actions; see `envs.demonstrations`.

A state is robosuite's flattened state: time [s], positions and velocities of all joints, shape (1 + nq + nv,).
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo and robosuite then load without OpenGL)

# isort: split
import gymnasium as gym
import mujoco
import numpy as np
import robosuite

from envs.demonstrations import Trajectory

PARTS = mujoco.mjtState.mjSTATE_TIME | mujoco.mjtState.mjSTATE_QPOS | mujoco.mjtState.mjSTATE_QVEL


def get_simulator_state(env: gym.Env) -> np.ndarray:
    """Return the simulator state of a (possibly wrapped) `PushEnv`, shape (1 + nq + nv,)."""
    base: Any = env.unwrapped
    state = np.empty(mujoco.mj_stateSize(base.model, PARTS))
    mujoco.mj_getState(base.model, base.data, state, PARTS)
    return state


def set_simulator_state(env: gym.Env, state: np.ndarray) -> None:
    """Set the simulator to a recorded state; as after a reset, no command of the controller remains.

    Raises:
        ValueError: The state belongs to another model.
    """
    base: Any = env.unwrapped
    size = mujoco.mj_stateSize(base.model, PARTS)
    if state.shape != (size,):
        raise ValueError(f"states: a row has {len(state)} numbers, but the simulator of {base.task} has {size}")
    mujoco.mj_resetData(base.model, base.data)
    mujoco.mj_setState(base.model, base.data, state, PARTS)
    mujoco.mj_forward(base.model, base.data)
    base._controller.reset(base.data)


def describe_model(env: gym.Env) -> str:
    """Return the MuJoCo model of a `PushEnv` (MJCF), in the form that robosuite's playback reads.

    It is the model composed by robosuite. The site "goal" holds the goal of the episode: its position [m], and its
    velocity [m/s] as user data. Paths of robosuite's files are relative to the package.
    """
    base: Any = env.unwrapped
    root = ET.fromstring(base.robosuite.model.get_xml())
    for element in root.iterfind(".//*[@file]"):
        element.set("file", re.sub(r".*/(robosuite/models/)", r"\1", element.attrib["file"]))
    site, goal = root.find(".//site[@name='goal']"), base.robosuite.goal.tolist()
    assert site is not None
    site.set("pos", f"{goal[0]} {goal[1]} {site.attrib['pos'].split()[2]}")
    site.set("user", f"{goal[2]} {goal[3]}")
    return ET.tostring(root, encoding="unicode")


def describe_environment(env: gym.Env) -> dict[str, Any]:
    """Return robomimic's `env_args` of a `PushEnv`: arguments that build the same task as a robosuite environment."""
    base: Any = env.unwrapped
    settings = {"grids": base.grids, "success_speed": base.success_speed, "goal_speed": base.goal_speed}
    settings["puck"] = asdict(base.puck)
    return {
        "env_name": type(base.robosuite).__name__,
        "env_version": robosuite.__version__,
        "type": 1,  # robosuite
        "env_kwargs": {"robots": "Panda", "control_freq": base.metadata["render_fps"], **settings},
    }


def play_states(env: gym.Env, trajectory: Trajectory) -> Iterator[np.ndarray]:
    """Set a `PushEnv` to each recorded state in turn, without simulation.

    Yields:
        State observation of the `PushEnv`, shape (8,).

    Raises:
        ValueError: No states were recorded, or they belong to another model.
    """
    if trajectory.states is None:
        raise ValueError("no states were recorded; record anew, or play the actions")
    base: Any = env.unwrapped
    _reset(env, trajectory)
    for state in trajectory.states:
        set_simulator_state(env, state)
        yield base.state_observation()


def play_actions(env: gym.Env, trajectory: Trajectory) -> Iterator[np.ndarray]:
    """Apply the recorded actions from the first recorded state or, without states, from the recorded start.

    Yields:
        State observation of the `PushEnv`, shape (8,).

    Raises:
        ValueError: There are no actions, or neither states nor a start were recorded.
    """
    if trajectory.actions is None:
        raise ValueError("no actions were recorded; play the states")
    base: Any = env.unwrapped
    _reset(env, trajectory)
    if trajectory.states is not None:
        set_simulator_state(env, trajectory.states[0])
    yield base.state_observation()
    for action in trajectory.actions:
        env.step(action)
        yield base.state_observation()


def _reset(env: gym.Env, trajectory: Trajectory) -> None:
    """Start an episode at the start of the demonstration.

    In the slot task, a reset without options suffices if there are states: the goal is always the same.
    """
    base: Any = env.unwrapped
    env.reset(options=trajectory.start if trajectory.states is None or base.task == "push-plane" else {})
