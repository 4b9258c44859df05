"""Start of an episode: sample puck, end effector and goal, and set the simulation to them at rest."""

from dataclasses import dataclass
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo and robosuite then load without OpenGL)

# isort: split
import mujoco
import numpy as np

from envs.push.controller import HOLD_ROTATION
from envs.push.geometry import (
    GRID_HALF_SIZE,
    GRIDS,
    HOLD_HEIGHT,
    PLANE_START_HALF_SIZE,
    PUCK,
    PUCK_HALF_HEIGHT,
    SLOT,
    TABLE_HEIGHT,
    TABLE_SIZE,
    WORKSPACE,
    Puck,
)

TIP_SITE = "gripper0_right_grip_site"
PUCK_BODY = "puck_main"
PUSHER_BODY = "gripper0_right_pusher"
OVERLAP = 0.015  # largest allowed penetration of puck or pusher at a start [m]
ON_TABLE = np.array(TABLE_SIZE[:2]) / 2  # largest |x| and |y| of puck and goal [m]
IK_ITERATIONS = 50
IK_DAMPING = 1e-4
IK_TOLERANCE = 1e-10  # an open-loop replay amplifies an error at the start by a factor of 10 000 [m, rad]


@dataclass(frozen=True)
class Placement:
    """Distribution of the starts.

    Attributes:
        slot: True for the slot task (reset grids, goal in the slot), False for the plane task (goal near the puck).
        grids: Number of active reset grids; the puck is drawn uniformly from their union.
        goal_range: Largest displacement of the plane task's goal from the puck, per axis [m].
        goal_speed: Largest velocity of the plane task's goal, per axis [m/s].
        puck: Shape of the puck, beside which the end effector starts.
    """

    slot: bool
    grids: int = 1
    goal_range: float = 0.1
    goal_speed: float = 0.05
    puck: Puck = PUCK

    def __post_init__(self) -> None:
        if self.grids not in range(1, len(GRIDS) + 1):
            raise ValueError(f"grids is {self.grids}; this task has reset grids 1 to {len(GRIDS)}")
        if not self.goal_speed >= 0:
            raise ValueError(f"goal_speed is {self.goal_speed}; it must be at least 0 m/s")

    def sample(self, rng: np.random.Generator, grid: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw one start.

        Args:
            rng: Random number generator, the only source of randomness.
            grid: Index of the reset grid; drawn from the active ones if None.

        Returns:
            Puck (2,) and end effector (2,) positions in the world frame [m]; goal (4,), position and velocity [m, m/s].

        Raises:
            ValueError: The grid does not exist.
        """
        if grid is not None and (not self.slot or grid not in range(len(GRIDS))):
            known = f"the reset grids are 0 to {len(GRIDS) - 1}" if self.slot else "the plane task has no reset grids"
            raise ValueError(f"grid is {grid!r}; {known}")
        if self.slot:
            grid = int(rng.integers(self.grids)) if grid is None else int(grid)
            puck = GRIDS[grid] + rng.uniform(-GRID_HALF_SIZE, GRID_HALF_SIZE, 2)
            goal = np.array([*SLOT.goal, 0.0, 0.0])
            near, far = 0.10, 0.15
        else:
            puck = rng.uniform(-PLANE_START_HALF_SIZE, PLANE_START_HALF_SIZE, 2)
            goal = np.concatenate(
                [
                    puck + rng.uniform(-self.goal_range, self.goal_range, 2),
                    rng.uniform(-self.goal_speed, self.goal_speed, 2),
                ]
            )
            near, far = self.puck.radius + 0.02, 0.13
        while True:
            angle, radius = rng.uniform(-np.pi, np.pi), rng.uniform(near, far)
            tip = puck + radius * np.array([np.cos(angle), np.sin(angle)])
            free = not self.slot or not _over_walls(tip)
            if free and np.all(tip >= WORKSPACE[0]) and np.all(tip <= WORKSPACE[1]):
                return puck, tip, goal


def checked(name: str, value: Any, size: int, bounds: np.ndarray | None = None) -> np.ndarray:
    """Return a given value as a validated array.

    Args:
        name: Name of the value in messages.
        value: Numbers; with `bounds`, a position comes first [m].
        size: Required number of values.
        bounds: Largest |x| and |y| of the position, shape (2,) [m]; None for no limit.

    Raises:
        ValueError: The value is not `size` finite numbers, or out of bounds.
    """
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise ValueError(f"{name} is {value!r}; give {size} finite numbers")
    if bounds is not None and (np.abs(array[:2]) > bounds).any():
        raise ValueError(f"{name} is at {array[:2].tolist()} m, off the table: |x|, |y| ≤ {bounds.tolist()} m")
    return array


def puck_addresses(model: mujoco.MjModel) -> tuple[int, int]:
    """Return the start of the puck's free joint in ``qpos`` and in ``qvel``."""
    joint = model.body(PUCK_BODY).jntadr[0]
    return int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])


def place(
    model: mujoco.MjModel, data: mujoco.MjData, puck_xy: np.ndarray, tip_xy: np.ndarray, home: np.ndarray
) -> None:
    """Put the puck and the pusher's tip at the given positions, everything at rest.

    Args:
        model: Model of a pushing task; the arm's joints are its first seven.
        data: State of the model, overwritten.
        puck_xy: Puck centre, world frame, shape (2,) [m].
        tip_xy: Tip of the pusher, world frame, shape (2,) [m].
        home: Joint positions from which the inverse kinematics starts, shape (7,) [rad].

    Raises:
        ValueError: The arm does not reach `tip_xy`.
    """
    mujoco.mj_resetData(model, data)
    address, _ = puck_addresses(model)
    data.qpos[address : address + 7] = [*puck_xy, TABLE_HEIGHT + PUCK_HALF_HEIGHT, 1.0, 0.0, 0.0, 0.0]
    data.qpos[:7] = home
    solve_ik(model, data, np.array([*tip_xy, HOLD_HEIGHT]))
    mujoco.mj_forward(model, data)


def refuse_overlap(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Check that neither puck nor pusher overlaps another body; contact forces would throw them apart.

    Raises:
        ValueError: One overlaps by more than ``OVERLAP``; the message names both geoms and the depth.
    """
    contacts = data.contact
    for deep in np.flatnonzero(contacts.dist < -OVERLAP):
        bodies = model.geom_bodyid[contacts.geom[deep]]
        if {PUCK_BODY, PUSHER_BODY} & {model.body(int(body)).name for body in bodies}:
            names = " and ".join(model.geom(int(geom)).name for geom in contacts.geom[deep])
            raise ValueError(f"the start has {names} {-1000 * contacts.dist[deep]:.0f} mm inside one another")


def solve_ik(model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> None:
    """Set the arm's joints such that the tip of the pusher is at `target` and points down, by damped least squares.

    Δq = Jᵀ(JJᵀ + λI)⁻¹ e, on kinematics only (Wampler 1986).

    Args:
        model: Model of a pushing task.
        data: State of the model; only the joint positions of the arm are changed.
        target: Position of the tip, world frame, shape (3,) [m].

    Raises:
        ValueError: The iteration does not converge: the target is out of reach.
    """
    site = model.site(TIP_SITE).id
    jacobian = np.zeros((6, model.nv))
    rotation = np.zeros(4)
    goal_rotation = np.zeros(4)
    mujoco.mju_axisAngle2Quat(goal_rotation, HOLD_ROTATION / np.pi, np.pi)
    inverse, difference, error = np.zeros(4), np.zeros(4), np.zeros(6)
    for _ in range(IK_ITERATIONS):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        error[:3] = target - data.site_xpos[site]
        mujoco.mju_mat2Quat(rotation, data.site_xmat[site])
        mujoco.mju_negQuat(inverse, rotation)
        mujoco.mju_mulQuat(difference, goal_rotation, inverse)
        mujoco.mju_quat2Vel(error[3:], difference, 1.0)
        if np.abs(error).max() < IK_TOLERANCE:
            return
        mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], site)
        j = jacobian[:, :7]
        data.qpos[:7] += j.T @ np.linalg.solve(j @ j.T + IK_DAMPING * np.eye(6), error)
    raise ValueError(f"the arm does not reach the tip position {np.round(target, 3).tolist()} m")


def _over_walls(tip: np.ndarray) -> bool:
    margin = 0.015  # radius of the rod plus 0.5 cm [m]
    return any(
        np.all(np.abs(tip - np.array(centre[:2])) <= np.array(size[:2]) + margin)
        for centre, size in SLOT.walls().values()
    )
