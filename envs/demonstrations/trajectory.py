"""The type of a demonstration, and its validation."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

Shape = tuple[int | None, ...]  # of one row; None is any size of at least 1
Bounds = tuple[np.ndarray, np.ndarray]  # lower and upper bound of an action, shape (A,) each

# The observations of the pushing tasks.
PUSH_SHAPES: Mapping[str, Shape] = {"state": (8,), "pointcloud": (None, 4), "puck_pose": (7,)}
LARGEST = float(np.finfo(np.float32).max)  # observations are used as float32


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One demonstration that ends in the goal set.

    Attributes:
        observations: Observations by name, shape (H + 1, …) each; see `envs.demonstrations`.
        actions: Actions, shape (H, A); None if the demonstration is action-free.
        grid: Index of the reset grid from which it starts.
        seed: Seed with which the environment was reset.
        end_effector: Initial position of the tip of the pusher, world frame, shape (2,) [m]. The state holds it as
            float32 only, and an open-loop replay amplifies the rounding error.
        states: State of the simulator before each action and, if known, after the last: time [s], positions and
            velocities of all joints, shape (H + 1, 1 + nq + nv) or one row less.
        model_file: MuJoCo model (MJCF) of the states.
        name: Name of the demonstration in its file.
        rewards: Recorded rewards, shape (H,); None is 1 for the last step and 0 before.
        dones: Recorded ends or successes of the episode, shape (H,), 0 or 1; None likewise.
        filter_keys: Names of the sets of demonstrations ("train", …) to which it belongs.
    """

    observations: dict[str, np.ndarray]
    actions: np.ndarray | None = None
    grid: int | None = None
    seed: int | None = None
    end_effector: np.ndarray | None = None
    states: np.ndarray | None = None
    model_file: str | None = None
    name: str | None = None
    rewards: np.ndarray | None = None
    dones: np.ndarray | None = None
    filter_keys: tuple[str, ...] = ()

    @property
    def horizon(self) -> int:
        """Length H of the demonstration [steps]."""
        return len(next(iter(self.observations.values()))) - 1

    @property
    def start(self) -> dict[str, np.ndarray]:
        """Options of `PushEnv.reset` that reproduce the start of this demonstration, everything at rest.

        Raises:
            ValueError: The state or the pose of the puck was not recorded.
        """
        missing = {"state", "puck_pose"} - set(self.observations)
        if missing:
            raise ValueError(f"no start without {' and '.join(sorted(missing))}; record with --obs state")
        state, puck = self.observations["state"][0].astype(float), self.observations["puck_pose"][0, :2]
        tip = puck - state[:2] if self.end_effector is None else self.end_effector
        return {"puck": puck, "end_effector": tip, "goal": np.append(puck - state[4:6], -state[6:8])}

    def until(self, step: int) -> "Trajectory":
        """Return the demonstration truncated to its first `step` steps."""
        kept = {"actions": step, "rewards": step, "dones": step, "states": step + 1}
        signals = {key: rows[: kept[key]] for key in kept if (rows := getattr(self, key)) is not None}
        observations = {name: rows[: step + 1] for name, rows in self.observations.items()}
        return replace(self, observations=observations, **signals)


def warn_if_longer(trajectories: Sequence[Trajectory], horizon: int) -> None:
    """Warn about demonstrations that are longer than the time limit of the environment; they are not truncated.

    Args:
        trajectories: Demonstrations.
        horizon: Time limit of the environment [steps].
    """
    longer = [f"{t.name or f'demo_{i}'} ({t.horizon} steps)" for i, t in enumerate(trajectories) if t.horizon > horizon]
    if longer:
        warnings.warn(f"longer than the horizon of {horizon} steps: {', '.join(longer)}", stacklevel=2)


def check(trajectory: Trajectory, where: str) -> None:
    """Check that the arrays of a demonstration are finite numbers and belong together.

    Args:
        trajectory: Demonstration.
        where: File and demonstration, with which messages start.

    Raises:
        ValueError: They are not; the message (one line) names the key.
    """
    for name, rows in trajectory.observations.items():
        check_rows(rows, (None,) * (rows.ndim - 1), f"{where}: obs/{name}")
    if not trajectory.observations or trajectory.horizon < 1:
        raise ValueError(f"{where}: obs: has less than 2 rows, so no step")
    for name, rows in trajectory.observations.items():
        check_length(rows, trajectory.horizon + 1, f"{where}: obs/{name}")
    tip = trajectory.end_effector
    if tip is not None and (np.shape(tip) != (2,) or not np.isfinite(tip).all()):
        raise ValueError(f"{where}: end_effector: is {np.asarray(tip).tolist()}, not 2 finite numbers")
    if trajectory.states is not None:
        check_rows(trajectory.states, (None,), f"{where}: states")
        if len(trajectory.states) != trajectory.horizon + 1:
            check_length(trajectory.states, trajectory.horizon, f"{where}: states")
    signals: dict[str, Shape] = {"actions": (None,), "rewards": (), "dones": ()}
    for key, shape in signals.items():
        if getattr(trajectory, key) is not None:
            check_rows(getattr(trajectory, key), shape, f"{where}: {key}")
            check_length(getattr(trajectory, key), trajectory.horizon, f"{where}: {key}")


def check_bounds(rows: np.ndarray, bounds: Bounds, where: str) -> None:
    """Check that actions, shape (H, A), lie within bounds up to rounding.

    Raises:
        ValueError: One does not; the message names its row.
    """
    low, high = bounds
    rounding = [1e-6 * np.maximum(1.0, np.abs(bound)) for bound in bounds]
    outside = np.argwhere((rows < low - rounding[0]) | (rows > high + rounding[1]))
    if len(outside):
        row, column = outside[0]
        found = rows[row].tolist()
        raise ValueError(f"{where}: row {row} is {found}, outside [{low[column]:g}, {high[column]:g}]")


def check_rows(rows: np.ndarray, shape: Shape, where: str) -> None:
    """Check that an array has at least one row, and that its rows have the given shape and finite numbers.

    Raises:
        ValueError: One of these does not hold.
    """
    fits = rows.ndim == len(shape) + 1 and all(
        size > 0 if wanted is None else size == wanted for size, wanted in zip(rows.shape[1:], shape, strict=False)
    )
    if not fits:
        raise ValueError(f"{where}: shape is {rows.shape}, not {expected(shape)}")
    if len(rows) == 0:
        raise ValueError(f"{where}: has no rows")
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"{where}: holds {rows.dtype}, not numbers")
    if rows.dtype.kind == "f":
        finite = np.abs(rows, dtype=np.float64) <= LARGEST
        broken = np.flatnonzero(~finite.all(axis=tuple(range(1, rows.ndim))))
        if len(broken):
            raise ValueError(f"{where}: row {broken[0]} is not finite")


def check_length(rows: np.ndarray, length: int, where: str) -> None:
    """Check that an array has `length` rows.

    Raises:
        ValueError: The number of rows differs.
    """
    if len(rows) != length:
        raise ValueError(f"{where}: has {len(rows)} rows, not {length}; observations have one more than steps")


def expected(shape: Shape) -> str:
    """Return, as text, the shape of an array with rows of the given shape; None is any number."""
    return f"({', '.join('n' if size is None else str(size) for size in ('steps', *shape))})"
