"""Episodes of a policy on the slot task, recorded as states of the simulator, and the frames in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float, Float32, Int

from envs.demonstrations import Trajectory
from envs.push.expert import Expert
from envs.push.playback import get_simulator_state, play_states

# Policy of one episode: from the environment at its start to a function of the observation.
Policy = Callable[[Any], Callable[[Any], np.ndarray]]


@dataclass(frozen=True)
class Frames:
    """Frames of several episodes, one after another.

    Attributes:
        episode: Number of the episode, shape (frames,).
        state: State observation [s_PE, v_PE, s_PG, v_PG], shape (frames, 8) [m, m/s].
        puck: Centre of the puck, world frame, shape (frames, 3) [m].
    """

    episode: Int[np.ndarray, " frames"]
    state: Float32[np.ndarray, "frames 8"]
    puck: Float[np.ndarray, "frames 3"]


def expert(base: Any) -> Callable[[Any], np.ndarray]:
    """Return the hand-coded expert for an episode of a `PushEnv`."""
    pusher = Expert(base.puck_position, radius=base.puck.radius)
    return lambda _: pusher.act(base.puck_position, base.end_effector_position)


def uniform(rng: np.random.Generator) -> Policy:
    """Return the policy whose actions are uniformly random."""
    return lambda _: lambda _: rng.uniform(-1.0, 1.0, 2)


def learned(agent: Any) -> Policy:
    """Return the deterministic policy of an object with the method `predict` of Stable-Baselines3."""
    return lambda _: lambda observation: agent.predict(observation, deterministic=True)[0]


def play(env: gymnasium.Env, policy: Policy, episodes: int, seed: int) -> list[Trajectory]:
    """Play episodes of the slot task, the i-th from `seed` + i, to success or the time limit.

    Returns:
        Simulator states and poses of the puck, one of H + 1 frames each.
    """
    base: Any = env.unwrapped
    trajectories = []
    for number in range(episodes):
        observation, _ = env.reset(seed=seed + number)
        act = policy(base)
        states, poses, done = [get_simulator_state(base)], [base.puck_pose], False
        while not done:
            observation, _, terminated, truncated, _ = env.step(act(observation))
            states.append(get_simulator_state(base))
            poses.append(base.puck_pose)
            done = terminated or truncated
        trajectories.append(Trajectory({"puck_pose": np.stack(poses)}, states=np.stack(states)))
    return trajectories


def frames_of(base: gymnasium.Env, trajectories: Sequence[Trajectory]) -> Frames:
    """Return the frames of recorded episodes.

    Args:
        base: `PushEnv` of the slot task.
        trajectories: Episodes with simulator states.
    """
    lengths = [trajectory.horizon + 1 for trajectory in trajectories]
    states = [state for trajectory in trajectories for state in play_states(base, trajectory)]
    pucks = np.concatenate([trajectory.observations["puck_pose"][:, :3] for trajectory in trajectories])
    return Frames(np.repeat(np.arange(len(lengths)), lengths), np.stack(states), pucks)
