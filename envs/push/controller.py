"""Control loop of one environment step: end-effector displacement → joint torques.

The operational-space controller runs once per physics substep. `osc_config` configures robosuite's controller;
`LeanController` computes the same torques from the same model, without robosuite's observables and look-ups.
"""

from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo and robosuite then load without OpenGL)

# isort: split
import mujoco
import numpy as np
from numba import njit
from robosuite.controllers import load_composite_controller_config

from envs.push.geometry import HOLD_HEIGHT, MAX_DISPLACEMENT, WORKSPACE

HOLD_ROTATION = np.array([np.pi, 0.0, 0.0])  # the pusher points down; rotation vector, world frame [rad]
HOLD_RANGE = 0.01  # [m]
KP = 300.0  # [1/s²]
DAMPING_RATIO = 1.0
NULLSPACE_KP = 10.0  # robosuite's gain towards the initial joint positions [1/s²]
# MuJoCo's warnings of position, velocity, acceleration or control that is not finite or is too large
UNSTABLE = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1)


def osc_config() -> dict[str, Any]:
    """Return robosuite's controller configuration for absolute poses of the pusher's tip in the world frame."""
    config = load_composite_controller_config(robot="Panda")
    config["body_parts"]["right"].update(
        type="OSC_POSE",
        kp=KP,
        damping_ratio=DAMPING_RATIO,
        input_type="absolute",
        input_ref_frame="world",
        uncouple_pos_ori=False,  # the full Λ: correcting the orientation must not displace the tip
    )
    return config


def target_pose(tip: np.ndarray, action: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Compute the controller's target pose from an action.

    g = clip(s_E + d·a + h, workspace) in the plane, with the z coordinate ``HOLD_HEIGHT``. h is the component of
    (previous target − s_E) perpendicular to the action, at most ``HOLD_RANGE`` long: it keeps a straight motion on its
    line. For a zero action, h is not projected, so the tip holds the previous target.

    Args:
        tip: Tip of the pusher, world frame, shape (3,) [m].
        action: Displacement a, shape (2,), clipped to [−1, 1].
        previous: Previous target (at the start: the tip), world frame, xy, shape (2,) [m].

    Returns:
        Position [m] and rotation vector [rad] of the tip, world frame, shape (6,).
    """
    action = np.clip(action, -1.0, 1.0)
    hold = previous - tip[:2]
    length = np.hypot(*action)
    if length > 0:
        hold = hold - action * (action @ hold) / length**2
    hold *= min(1.0, HOLD_RANGE / max(np.hypot(*hold), 1e-12))
    xy = np.clip(tip[:2] + MAX_DISPLACEMENT * action + hold, WORKSPACE[0], WORKSPACE[1])
    return np.array([xy[0], xy[1], HOLD_HEIGHT, *HOLD_ROTATION])


class Target:
    """Target of the tip, carried over from one step to the next (`target_pose`).

    The target is valid for the simulator state at the end of the last step. If the state has been set from outside
    since then, the motion starts as after a reset: the target is the position of the tip, and the controls and the
    solver's warm start are zero. The same state and the same actions then give exactly the same motion.

    Args:
        model: Model of a pushing task.
        site: Index of the controlled site.

    Attributes:
        position: Target position, world frame, shape (3,) [m].
    """

    def __init__(self, model: mujoco.MjModel, site: int) -> None:
        self.model, self.site = model, site
        self.position = np.zeros(3)
        self._state = b""

    def keep(self, data: mujoco.MjData, position: np.ndarray) -> None:
        """Store `position`, world frame, shape (3,) [m], as the target that is valid for the current state."""
        self.position = np.array(position)
        self._state = _motion(data)

    def move(self, data: mujoco.MjData, action: np.ndarray) -> np.ndarray:
        """Update the target by an action and return the target pose of the next step, shape (6,); see `target_pose`."""
        tip = data.site_xpos[self.site]
        if _motion(data) != self._state:
            data.ctrl[:], data.qacc_warmstart[:] = 0.0, 0.0
            mujoco.mj_forward(self.model, data)
            self.position = tip.copy()
        pose = target_pose(tip, action, self.position[:2])
        self.position = pose[:3]
        return pose


def check_stable(data: mujoco.MjData) -> None:
    """Check that the simulation has not become unstable, in which case MuJoCo resets to its default state.

    Raises:
        FloatingPointError: It has become unstable since the last reset; the message names the degree of freedom.
    """
    bad = data.warning.number[UNSTABLE]
    if bad.any():
        joint = data.warning.lastinfo[UNSTABLE][bad.argmax()]
        raise FloatingPointError(f"the simulation became unstable (degree of freedom {joint})")


class LeanController:
    """Advance the simulation by one environment step under operational-space control (Khatib 1987).

    τ = Jᵀ Λ [k_p e_x − k_d v; k_p e_R − k_d ω] + bias + Nᵀ M (k_n (q₀ − q) − 2√k_n q̇), clipped to the actuators'
    range: the torques of robosuite's `OperationalSpaceController`, recomputed at every physics substep.

    Args:
        model: Model of a pushing task.
        home: Joint positions that the nullspace term holds, shape (7,) [rad].
        site: Name of the controlled site.
        substeps: Physics steps per environment step.
    """

    def __init__(self, model: mujoco.MjModel, home: np.ndarray, site: str, substeps: int) -> None:
        self.model, self.substeps = model, substeps
        self.site = model.site(site).id
        self.target = Target(model, self.site)
        self.home = np.array(home)
        self.limits = model.actuator_ctrlrange[:7].copy()
        self.jacobian = np.zeros((6, model.nv))
        self.mass = np.zeros((model.nv, model.nv))
        self.rotation = _rotation_matrix(HOLD_ROTATION)

    def reset(self, data: mujoco.MjData) -> None:
        """Set the target to the current position of the tip."""
        self.target.keep(data, data.site_xpos[self.site])

    def step(self, data: mujoco.MjData, action: np.ndarray) -> None:
        """Apply one action for one environment step.

        Args:
            data: State of the model, advanced by `substeps` physics steps.
            action: Displacement Δs_E, shape (2,), clipped to [−1, 1], in units of ``MAX_DISPLACEMENT``.

        Raises:
            FloatingPointError: The simulation became unstable; MuJoCo itself would continue from its default state.
        """
        try:
            self._step(data, action)
        except np.linalg.LinAlgError:
            if not data.warning.number[UNSTABLE].any():
                raise
        check_stable(data)
        self.target.keep(data, self.target.position)

    def _step(self, data: mujoco.MjData, action: np.ndarray) -> None:
        model, site, jacobian, mass = self.model, self.site, self.jacobian, self.mass
        translational, rotational = jacobian[:3], jacobian[3:]
        position, matrix = data.site_xpos[site], data.site_xmat[site]
        qpos, qvel, bias, ctrl, inertia = data.qpos, data.qvel, data.qfrc_bias, data.ctrl, data.qM
        # The site positions are up to date: `PushEnv` computes the kinematics at the end of each step.
        target = self.target.move(data, action)[:3]
        for _ in range(self.substeps):
            mujoco.mj_step1(model, data)
            mujoco.mj_jacSite(model, data, translational, rotational, site)
            mujoco.mj_fullM(model, mass, inertia)
            _torques(
                jacobian,
                mass,
                qpos,
                qvel,
                bias,
                position,
                matrix,
                target,
                self.rotation,
                self.home,
                self.limits,
                ctrl,
                KP,
                2.0 * DAMPING_RATIO * KP**0.5,
                NULLSPACE_KP,
            )
            mujoco.mj_step2(model, data)


def _motion(data: mujoco.MjData) -> bytes:
    return np.concatenate([[data.time], data.qpos, data.qvel]).tobytes()


def _rotation_matrix(vector: np.ndarray) -> np.ndarray:
    quaternion, matrix = np.zeros(4), np.zeros(9)
    angle = np.linalg.norm(vector)
    mujoco.mju_axisAngle2Quat(quaternion, vector / angle, angle)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


@njit(cache=True)
def _torques(
    jacobian, mass, qpos, qvel, bias, position, matrix, target, rotation, home, limits, ctrl, kp, kd, nullspace_kp
):  # type: ignore[no-untyped-def]
    """Write the torques of the arm [N m] to `ctrl`; see `LeanController`."""
    n = 7
    j = np.ascontiguousarray(jacobian[:, :n])
    m = np.ascontiguousarray(mass[:n, :n])
    q, v = qpos[:n], qvel[:n].copy()
    twist = j @ v
    # orientation error: half the sum of the cross products of current and desired axes
    e = np.zeros(3)
    for a in range(3):
        c0, c1, c2 = matrix[a], matrix[3 + a], matrix[6 + a]
        d0, d1, d2 = rotation[0, a], rotation[1, a], rotation[2, a]
        e[0] += 0.5 * (c1 * d2 - c2 * d1)
        e[1] += 0.5 * (c2 * d0 - c0 * d2)
        e[2] += 0.5 * (c0 * d1 - c1 * d0)
    acceleration = np.empty(6)
    for i in range(3):
        acceleration[i] = kp * (target[i] - position[i]) - kd * twist[i]
        acceleration[3 + i] = kp * e[i] - kd * twist[3 + i]
    mj = np.linalg.solve(m, j.T)  # M⁻¹ Jᵀ, (7, 6)
    full = j @ mj  # Λ⁻¹ = J M⁻¹ Jᵀ, (6, 6)
    kv = 2.0 * np.sqrt(nullspace_kp)
    pose = m @ (nullspace_kp * (home - q) - kv * v)
    # Nᵀ p = p − Jᵀ Λ (M⁻¹ Jᵀ)ᵀ p, so that task and nullspace share one solve with Λ⁻¹
    tau = j.T @ np.linalg.solve(full, acceleration - mj.T @ pose) + pose
    for i in range(n):
        ctrl[i] = min(max(tau[i] + bias[i], limits[i, 0]), limits[i, 1])
