"""Command that records demonstrations of the hand-coded expert: ``python -m envs.record --out demonstrations.hdf5``."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import tyro
from gymnasium.utils import seeding

from envs.command import one_line_errors
from envs.demonstrations import Trajectory, save_demonstrations
from envs.files import check_replaceable
from envs.push.expert import Expert
from envs.push.geometry import GRIDS, PUCK, Puck
from envs.push.make import SUCCESS_SPEEDS, make_push
from envs.ranges import SEED, Range, check_range

ATTEMPTS = 10  # episodes per demonstration before the command gives up


def demonstrate(env: gym.Env, grid: int | None = None, seed: int = 0, clouds: bool = False) -> Trajectory | None:
    """Run the expert for one episode.

    Args:
        env: A `envs.push.env.PushEnv`, possibly wrapped in the point-cloud observation.
        grid: Index of the reset grid; drawn at random if None.
        seed: Seed of the reset.
        clouds: Whether the observations of `env` are clouds, which are recorded in addition to the state.

    Returns:
        Demonstration with actions and simulator states; None if the episode was not a success or, with clouds, the
        puck was hidden in a frame.
    """
    from envs.push.playback import describe_model, get_simulator_state  # imported late: it imports the simulator

    base: Any = env.unwrapped
    # The same start as reset(seed=seed, options={"grid": grid}). The drawn tip position is stored, because the reached
    # one differs by the tolerance of the inverse kinematics, which an open-loop replay amplifies beyond 1 mm.
    start = base.robosuite.placement.sample(seeding.np_random(seed)[0], grid)
    observation, info = env.reset(seed=seed, options=dict(zip(("puck", "end_effector", "goal"), start, strict=True)))
    goal = None if base.task == "push-slot" else base.goal_position
    expert = Expert(base.puck_position, goal, base.puck.radius)
    rows: dict[str, list[np.ndarray]] = {"state": [], "pointcloud": [], "puck_pose": []}
    states: list[np.ndarray] = []
    actions: list[np.ndarray] = []
    terminated = truncated = info["is_success"]
    seen = True
    while True:
        rows["state"].append(base.state_observation())
        rows["puck_pose"].append(base.puck_pose)
        states.append(get_simulator_state(base))
        if clouds:
            seen &= info["puck_visible"]  # a cloud without the puck would become a demonstrated goal
            rows["pointcloud"].append(observation)
        if terminated or truncated:
            break
        # Rounded to the precision in which actions are stored, so that a replay is identical.
        actions.append(expert.act(base.puck_position, base.end_effector_position).astype(np.float32))
        observation, _, terminated, truncated, info = env.step(actions[-1])
    if not (terminated and actions and seen):
        return None
    return Trajectory(
        {k: np.stack(v) for k, v in rows.items() if v},
        np.stack(actions),
        grid,
        seed,
        start[1],
        np.stack(states),
        describe_model(base),
    )


def record(
    out: Path,
    task: str = "push-slot",
    grids: int = 1,
    episodes: int | None = None,
    obs: tuple[Literal["state", "pointcloud"], ...] = ("state",),
    action_free: bool = False,
    puck: Puck = PUCK,
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Record demonstrations of the hand-coded, sub-optimal expert.

    Episodes cycle through the active reset grids. A failed episode is discarded and repeated from another start. The
    pose of the puck and the states of the simulator are always recorded.

    Args:
        out: HDF5 file to write.
        task: push-slot or push-plane.
        grids: Number of active reset grids of push-slot, 1 to 3.
        episodes: Number of demonstrations; defaults to one per grid.
        obs: Observations to record; pointcloud needs Open3D.
        action_free: Do not record actions, as in demonstrations by hand.
        puck: Shape and friction of the puck.
        seed: Seed of the first episode; each further episode increments it by 1.
        overwrite: Replace an existing file.
    """
    from envs.push.env import TASKS  # imported late: it imports the simulator
    from envs.push.playback import describe_environment

    episodes = grids if episodes is None else episodes
    if task not in TASKS:
        raise ValueError(f"--task: unknown task {task!r}; known tasks: {', '.join(TASKS)}")
    check_range("grids", grids, Range(1, len(GRIDS)))
    check_range("episodes", episodes, Range(1, 10**6))
    check_range("seed", seed, SEED)
    if not obs:
        raise ValueError("--obs is empty; give state, pointcloud or both")
    if out.exists() and not overwrite:
        raise FileExistsError(f"{out}: exists already; choose another name or --overwrite")
    check_replaceable(out)
    clouds = "pointcloud" in obs
    # The lowest success speed, so that demonstrations end in the goal set for every observation.
    arguments: dict[str, Any] = {"grids": grids, "puck": puck} | (
        {"success_speed": SUCCESS_SPEEDS["state"]} if task == "push-slot" else {}
    )
    env = make_push(task, obs="pointcloud" if clouds else "state", **arguments)
    trajectories: list[Trajectory] = []
    for episode in range(episodes):
        grid = episode % grids if task == "push-slot" else None
        for _ in range(ATTEMPTS):
            trajectory = demonstrate(env, grid, seed, clouds)
            seed += 1
            if trajectory is not None:
                break
            print(f"dropped seed {seed - 1}: no success, or the puck was hidden from the camera")
        else:
            raise ValueError(f"{ATTEMPTS} episodes in a row without success, the last with seed {seed - 1}")
        start = "" if grid is None else f"grid {grid + 1}, "
        print(f"demo_{episode}: {start}seed {trajectory.seed}, {trajectory.horizon} steps")
        kept = {k: v for k, v in trajectory.observations.items() if k in (*obs, "puck_pose")}
        trajectories.append(replace(trajectory, observations=kept, actions=None if action_free else trajectory.actions))
    save_demonstrations(out, trajectories, describe_environment(env), overwrite)
    env.close()
    what = "action-free demonstration" if action_free else "demonstration"
    print(f"wrote {len(trajectories)} {what}{'s'[: len(trajectories) > 1]} of {', '.join(obs)} to {out}")


@one_line_errors
def main() -> None:
    """Run the command line; invalid input is reported in one line."""
    tyro.cli(record, prog="python -m envs.record")


if __name__ == "__main__":
    main()
