"""Episodes as data: played by a policy, or replayed from a demonstration."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float32

from envs.demonstrations import Trajectory
from envs.push.make import SUCCESS_SPEEDS
from envs.push.playback import get_simulator_state
from envs.push.success import push_success
from perception.visualize.landscape import curves
from perception.visualize.scene import Scene, replay
from shaping.potential import Potential
from shaping.reward import shaped_reward
from shaping.visibility import LastSeen, known_potential

Act = Callable[[dict[str, np.ndarray]], np.ndarray]
"""Chooses an action, shape (2,), from the observations by name."""


@dataclass(frozen=True)
class Policy:
    """Policy that plays episodes.

    Attributes:
        title: Name in titles.
        obs: Observation by which it acts; it decides at what speed the puck counts as resting.
        begin: Called after every reset; returns what chooses the actions of the episode.
    """

    title: str
    obs: str
    begin: Callable[[], Act]


@dataclass(frozen=True)
class Episode:
    """One episode of T steps.

    Attributes:
        title: Policy and start, or the name of the demonstration.
        states: States of the simulator, shape (T + 1, 1 + nq + nv); see `envs.push.playback`.
        observations: "state" (T + 1, 8) and "pointcloud" (T + 1, num_points, 4).
        visible: Whether each frame shows the puck, shape (T + 1,).
        actions: Actions, shape (T, 2); None if there were none.
        success: Whether it ended in the goal set.
    """

    title: str
    states: Float[np.ndarray, "frames numbers"]
    observations: dict[str, np.ndarray]
    visible: Bool[np.ndarray, " frames"]
    actions: Float[np.ndarray, "steps 2"] | None
    success: bool

    @property
    def length(self) -> int:
        """Number T of steps."""
        return len(self.states) - 1


class Recorder:
    """Collects the frames of a scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._rows: dict[str, list[np.ndarray]] = {"state": [], "pointcloud": []}
        self._states: list[np.ndarray] = []
        self._visible: list[bool] = []

    def add(self, cloud: Float32[np.ndarray, "points 4"], visible: bool) -> dict[str, np.ndarray]:
        """Add the present frame, of which the cloud is given, and return its observations by name."""
        frame = {"state": self._scene.base.state_observation(), "pointcloud": cloud}
        for name, row in frame.items():
            self._rows[name].append(row)
        self._states.append(get_simulator_state(self._scene.base))
        self._visible.append(visible)
        return frame

    def episode(self, title: str, actions: list[np.ndarray] | np.ndarray | None, success: bool) -> Episode:
        """Return what was collected."""
        rows = {name: np.stack(of_name) for name, of_name in self._rows.items()}
        taken = None if actions is None else np.asarray(actions, dtype=float).reshape(-1, 2)
        return Episode(title, np.stack(self._states), rows, np.array(self._visible), taken, success)


def play(scene: Scene, policy: Policy, seed: int, grid: int | None = None) -> Episode:
    """Play one episode from the start of a seed, on a reset grid that is drawn from the active ones if None."""
    recorder = Recorder(scene)
    actions: list[np.ndarray] = []
    with success_speed(scene, policy.obs):
        cloud, info = scene.env.reset(seed=seed, options={} if grid is None else {"grid": grid})
        act, frame, done = policy.begin(), recorder.add(cloud, info["puck_visible"]), False
        while not done:
            actions.append(np.asarray(act(frame), dtype=float))
            cloud, _, terminated, truncated, info = scene.env.step(actions[-1])
            frame, done = recorder.add(cloud, info["puck_visible"]), terminated or truncated
    return recorder.episode(f"{policy.title}, seed {seed}", actions, bool(info["is_success"]))


def replayed(scene: Scene, trajectory: Trajectory, title: str) -> Episode:
    """Return a demonstration as an episode; see `perception.visualize.scene.replay`.

    It is a success if its last recorded observations are, as far as they tell, for one of them.
    """
    recorder = Recorder(scene)
    for frame in replay(scene, trajectory):
        recorder.add(frame.cloud, frame.visible)
    loosest = max(SUCCESS_SPEEDS, key=lambda name: SUCCESS_SPEEDS[name] * (name in trajectory.observations))
    with success_speed(scene, loosest):
        ended = push_success(scene.base.goal_reward)(trajectory.observations)[-1]
    return recorder.episode(title, trajectory.actions, bool(np.nan_to_num(ended, nan=1.0)))


@contextmanager
def success_speed(scene: Scene, obs: str) -> Iterator[None]:
    """Judge success at the speed of an observation."""
    before = scene.base.success_speed
    scene.base.success_speed = SUCCESS_SPEEDS[obs]
    try:
        yield
    finally:
        scene.base.success_speed = before


def signals(episode: Episode, potential: Potential, obs: str) -> dict[str, Float[np.ndarray, " frames"]]:
    """Return what a training on clouds or states makes of an episode, frame by frame.

    Returns:
        "Φ": of the frame, or of the last one before that showed the puck (`shaping.visibility`);
        "V_d", "Ṽ_g": of the demonstrated state that Φ chooses, NaN in frames without the puck;
        "r̄": shaped reward of the step from the frame, 0 for the last one.
    """
    observations, visible = episode.observations[obs], episode.visible
    rows = {name: row.astype(float) for name, row in curves(potential, observations, episode.success).items()}
    success = (np.arange(len(visible)) == episode.length) & episode.success
    values, known = known_potential(potential, observations, visible, success, success)
    seen = LastSeen(values[:1], visible[:1])
    phi, shaped = [values[0]], []
    for step in range(episode.length):
        before, seen = seen.follow(values[step + 1 : step + 2], known[step + 1 : step + 2], potential.gamma)
        phi.append(seen.potential[0])
        shaped.append(shaped_reward(float(success[step + 1]), float(before[0]), float(phi[-1]), potential.gamma))
    hidden = {name: np.where(visible, rows[name], np.nan) for name in ("V_d", "Ṽ_g")}
    return {"Φ": np.array(phi, dtype=float), **hidden, "r̄": np.array([*shaped, 0.0])}
