"""Gymnasium environment of the pushing tasks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo and robosuite then load without OpenGL)

# isort: split
import gymnasium as gym
import mujoco
import numpy as np

from envs.opengl import Picture
from envs.push.controller import LeanController
from envs.push.geometry import PUCK, Puck
from envs.push.placement import ON_TABLE, TIP_SITE, checked, puck_addresses, refuse_overlap
from envs.push.success import in_goal_set
from envs.push.tasks import PushPlane, PushSlot, above_zero

TASKS: dict[str, type[PushPlane]] = {"push-slot": PushSlot, "push-plane": PushPlane}
HORIZONS = {"push-slot": 150, "push-plane": 50}  # [steps]
KEPT = ("spec", "action_space", "observation_space")  # attributes copied with the random states of the spaces


class PushEnv(gym.Env[np.ndarray, np.ndarray]):
    """Goal-conditioned pushing task with Gymnasium's API.

    The model is that of robosuite (`PushSlot`, `PushPlane`); the control loop is `LeanController`, which computes the
    torques of robosuite's controller faster. The observation is [s_PE, v_PE, s_PG, v_PG] ∈ R⁸, float32: displacement
    and velocity of the puck relative to the end effector and to the goal, xy, world frame [m, m/s]. The action is
    Δs_E ∈ [−1, 1]², the displacement of the tip in units of ``MAX_DISPLACEMENT``.

    The reward is 1 on success, which terminates the episode, and 0 otherwise; the time limit truncates the episode.
    Success: the puck is in the goal set, which is defined in the plane (`goal_reward`), and lies flat on the table.
    Every `info` has `is_success`, `achieved_goal` and `desired_goal` (position, velocity, world frame, (4,) [m, m/s]).

    Args:
        task: "push-slot" or "push-plane".
        grids: Number of active reset grids of the slot task, 1 to 3.
        horizon: Time limit [steps]; defaults to ``HORIZONS[task]``.
        success_speed: Speed of the puck relative to the goal below which a step can be a success [m/s]; defaults to
            the task's ``default_success_speed``.
        goal_speed: Largest goal velocity of the plane task, per axis [m/s].
        puck: Shape and friction of the puck: a `Puck`, or a mapping of its settings.
        render_mode: None or "rgb_array".
        camera: Name of the camera of `render`.

    Raises:
        ValueError: Unknown task, number of grids, render mode or camera, or invalid horizon, speed or puck.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's contract)

    def __init__(
        self,
        task: str = "push-slot",
        grids: int = 1,
        horizon: int | None = None,
        success_speed: float | None = None,
        goal_speed: float = 0.05,
        puck: Puck | Mapping[str, Any] = PUCK,
        render_mode: str | None = None,
        camera: str = "overhead",
    ) -> None:
        if task not in TASKS:
            raise ValueError(f"unknown task {task!r}; known tasks: {', '.join(TASKS)}")
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"unknown render_mode {render_mode!r}; known: None, 'rgb_array'")
        self.task, self.render_mode, self.camera = task, render_mode, camera
        self.horizon = HORIZONS[task] if horizon is None else horizon
        self.robosuite = TASKS[task](grids=grids, success_speed=success_speed, goal_speed=goal_speed, puck=puck)
        self.model: mujoco.MjModel = self.robosuite.sim.model._model
        self.data: mujoco.MjData = self.robosuite.sim.data._data
        cameras = [self.model.camera(i).name for i in range(self.model.ncam)]
        if camera not in cameras:
            raise ValueError(f"unknown camera {camera!r}; the model has {', '.join(cameras)}")
        self._tip = self.model.site(TIP_SITE).id
        position, velocity = puck_addresses(self.model)
        self._puck, self._puck_velocity = slice(position, position + 7), slice(velocity, velocity + 2)
        substeps = round(1.0 / (self.metadata["render_fps"] * self.model.opt.timestep))
        home = np.array(self.robosuite.robots[0].init_qpos)
        self._controller = LeanController(self.model, home, TIP_SITE, substeps)
        self._jacobian = np.zeros((3, self.model.nv))
        self._steps = 0
        self._picture: Picture | None = None
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        bound = np.array([2, 2, 10, 10, 2, 2, 10, 10], np.float32)
        self.observation_space = gym.spaces.Box(-bound, bound, dtype=np.float32)

    @property
    def horizon(self) -> int:
        """Time limit [steps]."""
        return self._horizon

    @horizon.setter
    def horizon(self, horizon: int) -> None:
        if not (isinstance(horizon, int | np.integer) and horizon >= 1):
            raise ValueError(f"horizon is {horizon!r}; it must be a whole number of steps, at least 1")
        self._horizon = horizon

    @property
    def grids(self) -> int:
        """Number of active reset grids of the slot task."""
        return self.robosuite.placement.grids

    @grids.setter
    def grids(self, grids: int) -> None:
        self.robosuite.placement = replace(self.robosuite.placement, grids=grids)

    @property
    def success_speed(self) -> float:
        """Speed of the puck relative to the goal below which a step can be a success [m/s]."""
        return self.robosuite.success_speed

    @success_speed.setter
    def success_speed(self, success_speed: float) -> None:
        self.robosuite.success_speed = above_zero(success_speed)

    @property
    def goal_speed(self) -> float:
        """Largest goal velocity of the plane task, per axis [m/s]."""
        return self.robosuite.placement.goal_speed

    @goal_speed.setter
    def goal_speed(self, goal_speed: float) -> None:
        self.robosuite.placement = replace(self.robosuite.placement, goal_speed=goal_speed)

    @property
    def puck(self) -> Puck:
        """Shape and friction of the puck."""
        return self.robosuite.placement.puck

    @property
    def puck_position(self) -> np.ndarray:
        """Position of the puck's centre, world frame, shape (3,) [m]."""
        return self.data.qpos[self._puck][:3].copy()

    @property
    def puck_pose(self) -> np.ndarray:
        """Position [m] and quaternion (w, x, y, z) of the puck, world frame, shape (7,)."""
        return self.data.qpos[self._puck].copy()

    @property
    def end_effector_position(self) -> np.ndarray:
        """Position of the tip of the pusher, world frame, shape (3,) [m]."""
        return self.data.site_xpos[self._tip].copy()

    @property
    def goal_position(self) -> np.ndarray:
        """Position of the goal, world frame, xy, shape (2,) [m]."""
        return self.robosuite.goal[:2].copy()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed of the environment's own generator; global random states are not changed.
            options: Values that replace the drawn ones, all optional: "grid" (index of the reset grid), and in the
                world frame [m, m/s] "puck" (2,), "end_effector" (2,), "goal" (4,).

        Raises:
            ValueError: An option is unknown, not finite, off the table or out of the arm's reach, or puck or pusher
                overlaps another body. The state of the environment is then unchanged.
        """
        before = self.get_state()
        try:
            return self._reset(seed, options)
        except ValueError:
            self.set_state(before)
            raise

    def _reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        options = dict(options or {})
        unknown = set(options) - {"grid", "puck", "end_effector", "goal"}
        if unknown:
            raise ValueError(f"unknown reset options {sorted(unknown)}; known: grid, puck, end_effector, goal")
        puck, tip, goal = self.robosuite.placement.sample(self.np_random, options.get("grid"))
        self.robosuite.reset_to(
            checked("puck", options.get("puck", puck), 2, ON_TABLE),
            checked("end_effector", options.get("end_effector", tip), 2),
            checked("goal", options.get("goal", goal), 4, ON_TABLE),
        )
        refuse_overlap(self.model, self.data)
        self._controller.reset(self.data)
        self._steps = 0
        return self.state_observation(), self._info()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Advance by one control step of 50 ms.

        Args:
            action: Δs_E, shape (2,), clipped to [−1, 1].

        Raises:
            ValueError: The action is not finite or has another shape.
            FloatingPointError: The simulation became unstable.
        """
        self._controller.step(self.data, checked("action", action, 2))
        # Kinematics of the new state: positions from qpos, the tip's velocity through its Jacobian.
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        self._steps += 1
        info = self._info()
        terminated = info["is_success"]
        truncated = self._steps >= self.horizon
        return self.state_observation(), float(terminated), terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """Return everything that the next step or reset depends on, as plain data for a checkpoint."""
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        physics = np.empty(mujoco.mj_stateSize(self.model, kind))
        mujoco.mj_getState(self.model, self.data, physics, kind)
        return {
            "physics": physics.tolist(),
            "goal": self.robosuite.goal.tolist(),
            "target": self._controller.target.position.tolist(),
            "steps": self._steps,
            "rng": self.np_random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state`; the continuation is exactly the same."""
        self.data.warning.number[:] = 0
        mujoco.mj_setState(self.model, self.data, np.array(state["physics"]), mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        self.robosuite.goal = np.array(state["goal"])
        self._controller.target.keep(self.data, np.array(state["target"]))
        self._steps = state["steps"]
        self.np_random.bit_generator.state = state["rng"]

    def __getstate__(self) -> dict[str, Any]:
        """Return constructor arguments and state, for pickle and copies.

        Changes of the MuJoCo model are not included and must be repeated in the copy.
        """
        return {"settings": self._settings(), "state": self.get_state(), "kept": {k: getattr(self, k) for k in KEPT}}

    def __setstate__(self, copied: dict[str, Any]) -> None:
        self.__init__(**copied["settings"])  # type: ignore[misc]
        self.set_state(copied["state"])
        self.__dict__.update(copied["kept"])

    def _settings(self) -> dict[str, Any]:
        names = ("task", "horizon", "grids", "success_speed", "goal_speed", "puck", "render_mode", "camera")
        return {name: getattr(self, name) for name in names}

    def goal_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None) -> np.ndarray:
        """Compute the sparse reward: 1 in the goal set, otherwise 0.

        The goal set is: less than 2 cm from the goal, and slower than `success_speed` relative to it.

        Args:
            achieved_goal: Position and velocity of the puck, shape (..., 4) [m, m/s].
            desired_goal: Position and velocity of the goal, shape (..., 4) [m, m/s].
            info: Ignored; the signature is that of Gymnasium's `GoalEnv.compute_reward`.

        Returns:
            Reward, shape (...).
        """
        distance, speed = self.robosuite.success_distance, self.robosuite.success_speed
        return in_goal_set(achieved_goal, desired_goal, distance, speed).astype(np.float64)

    def state_observation(self) -> np.ndarray:
        """Return [s_PE, v_PE, s_PG, v_PG] of the present state, xy, world axes, shape (8,) [m, m/s]."""
        data, goal = self.data, self.robosuite.goal
        mujoco.mj_jacSite(self.model, data, self._jacobian, None, self._tip)
        tip_velocity = self._jacobian[:2] @ data.qvel
        puck, velocity = data.qpos[self._puck][:2], data.qvel[self._puck_velocity]
        return np.concatenate(
            [
                puck - data.site_xpos[self._tip, :2],
                velocity - tip_velocity,
                puck - goal[:2],
                velocity - goal[2:],
            ]
        ).astype(np.float32)

    def render(self) -> np.ndarray | None:
        """Render the scene from `camera`.

        Returns:
            Image of shape (480, 640, 3), uint8; None if there is no render mode.

        Raises:
            GraphicsError: OpenGL is missing, or was used before this process was forked.
        """
        if self.render_mode is None:
            return None
        self._picture = self._picture or Picture(self.model, width=640, height=480)
        mujoco.mj_forward(self.model, self.data)
        return self._picture.draw(self.data, self.camera)

    def close(self) -> None:
        """Free the renderer; repeated calls have no effect."""
        if self._picture is not None:
            self._picture.close()
            self._picture = None

    def _info(self) -> dict[str, Any]:
        achieved = np.concatenate([self.data.qpos[self._puck][:2], self.data.qvel[self._puck_velocity]])
        return {
            "is_success": self.robosuite._check_success(),
            "achieved_goal": achieved,
            "desired_goal": self.robosuite.goal,
        }
