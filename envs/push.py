"""The pushing tasks as robosuite environments: table, puck, Panda with a rigid pusher, and a U-shaped slot."""

import xml.etree.ElementTree as ET
from importlib.resources import files
from typing import Any

import envs.simulator  # noqa: F401 (first: it imports MuJoCo and robosuite, also where they cannot draw)

# isort: split
import mujoco
import numpy as np
import robosuite
from robosuite import macros
from robosuite.environments.manipulation.manipulation_env import ManipulationEnv
from robosuite.models.arenas import TableArena
from robosuite.models.grippers import register_gripper
from robosuite.models.grippers.gripper_model import GripperModel
from robosuite.models.objects import CylinderObject
from robosuite.models.tasks import ManipulationTask

from envs.control import check_stable, osc_config, target_pose
from envs.geometry import (
    CAMERAS,
    PUCK_FRICTION,
    PUCK_HALF_HEIGHT,
    PUCK_RADIUS,
    PUCK_STIFFNESS,
    RIM,
    SLOT,
    TABLE_HEIGHT,
    TABLE_SIZE,
    SlotGeometry,
)
from envs.placement import TIP_SITE, Placement, checked, place, puck_addresses
from envs.simulator import check_versions


@register_gripper
class Pusher(GripperModel):
    """A rod of radius 1 cm and length 14 cm on the flange, without actuation."""

    def __init__(self, idn: int = 0) -> None:
        super().__init__(str(files("assets") / "mjcf" / "pusher.xml"), idn=idn)

    def format_action(self, action: np.ndarray) -> np.ndarray:
        """Return the (empty) action."""
        return action

    @property
    def init_qpos(self) -> None:
        """No joints."""
        return None

    @property
    def _important_geoms(self) -> dict[str, list[str]]:
        return {k: [] for k in ("left_finger", "right_finger", "left_fingerpad", "right_fingerpad")}


def above_zero(success_speed: float) -> float:
    """Return a threshold of speed [m/s].

    Raises:
        ValueError: It is not above 0.
    """
    if not success_speed > 0:
        raise ValueError(f"success_speed is {success_speed}; it must be above 0 m/s")
    return success_speed


class PushPlane(ManipulationEnv):
    """Push the puck to a goal on the free table: the task in which the prior is learned.

    Builds with ``robosuite.make("PushPlane", robots="Panda")``. The action is the displacement of the end effector,
    Δs_E ∈ [−1, 1]² in units of ``MAX_DISPLACEMENT``; robosuite's operational-space controller holds height and
    orientation. Reward is 1 on success and 0 elsewhere.
    """

    slot: SlotGeometry | None = None
    success_distance = 0.02  # [m]
    default_success_speed = 0.1  # relative speed, puck to goal [m/s]

    def __init__(
        self,
        robots: str | list[str] = "Panda",
        grids: int = 1,
        success_speed: float | None = None,
        goal_speed: float = 0.05,
        control_freq: float = 20,
        gripper_types: str = "Pusher",
        controller_configs: dict | None = None,
        hard_reset: bool = False,
        use_camera_obs: bool = False,
        has_offscreen_renderer: bool = False,
        horizon: int = 1000,
        **kwargs: Any,
    ) -> None:
        check_versions(mujoco.__version__, robosuite.__version__)
        if gripper_types != "Pusher":
            raise ValueError(f"gripper_types is {gripper_types!r}; the pushing tasks are built for the Pusher")
        rate = round(1.0 / macros.SIMULATION_TIMESTEP)
        if control_freq <= 0 or rate % control_freq:
            raise ValueError(f"control_freq is {control_freq} Hz; physics runs at {rate} Hz, give a divisor such as 20")
        controller_configs = osc_config() if controller_configs is None else controller_configs
        _check_controller(controller_configs)
        self.placement = Placement(grids=grids, slot=self.slot is not None, goal_speed=goal_speed)
        self.success_speed = above_zero(self.default_success_speed if success_speed is None else success_speed)
        self.goal = np.zeros(4)  # position [m] and velocity [m/s] of the goal, world frame
        super().__init__(
            robots=robots,
            controller_configs=controller_configs,
            gripper_types=gripper_types,
            initialization_noise=None,
            control_freq=control_freq,
            hard_reset=hard_reset,
            use_camera_obs=use_camera_obs,
            has_offscreen_renderer=has_offscreen_renderer,
            horizon=horizon,
            **kwargs,
        )

    def _load_model(self) -> None:
        super()._load_model()
        robot = self.robots[0].robot_model
        robot.set_base_xpos(robot.base_xpos_offset["table"](TABLE_SIZE[0]))
        arena = TableArena(TABLE_SIZE, table_friction=PUCK_FRICTION, table_offset=(0, 0, TABLE_HEIGHT), has_legs=False)
        arena.set_origin([0, 0, 0])
        boxes = RIM | (self.slot.walls() if self.slot is not None else {})
        for name, (position, size) in boxes.items():
            arena.worldbody.append(_box(name, position, size))
        for name, view in CAMERAS.items():
            eye, quaternion = look_at(view["position"], view["target"])
            arena.set_camera(name, eye, quaternion, {"fovy": str(view["fovy"])})
        arena.worldbody.append(
            ET.Element(
                "site",
                {
                    "name": "goal",
                    "type": "cylinder",
                    "size": "0.02 0.001",
                    "pos": f"0 0 {TABLE_HEIGHT + 0.001}",
                    "rgba": "0.1 0.7 0.2 1",
                },
            )
        )
        self.puck = CylinderObject(
            "puck",
            size=[PUCK_RADIUS, PUCK_HALF_HEIGHT],
            density=500,
            friction=PUCK_FRICTION,
            solref=PUCK_STIFFNESS,
            rgba=[0.85, 0.15, 0.1, 1],
        )
        for geom in self.puck.get_obj().iter("geom"):
            geom.set("priority", "1")  # the puck's stiffness counts, whatever it touches
            geom.set("margin", "0")  # robosuite's default lets the puck float 1 mm above the table
        self.model = ManipulationTask(arena, [robot], [self.puck])

    def _load_robots(self) -> None:
        super()._load_robots()
        for robot in self.robots:
            robot.robot_model.mujoco_model = None  # the arm alone, 50 MB, which only whole-body controllers read

    def _reset_internal(self) -> None:
        super()._reset_internal()
        if not self.deterministic_reset:
            self.reset_to(*self.placement.sample(self.rng))

    def reset_to(self, puck_xy: np.ndarray, end_effector_xy: np.ndarray, goal: np.ndarray) -> None:
        """Put puck and end effector at rest at the given positions and set the goal.

        Args:
            puck_xy: Puck centre, world frame, shape (2,) [m].
            end_effector_xy: Tip of the pusher, world frame, shape (2,) [m].
            goal: Position and velocity of the goal, world frame, shape (4,) [m, m/s].
        """
        model, data = self.sim.model._model, self.sim.data._data
        place(model, data, puck_xy, end_effector_xy, self.robots[0].init_qpos)
        self.goal = np.asarray(goal, dtype=np.float64)
        self._command = data.site(TIP_SITE).xpos.copy()
        model.site("goal").pos[:2] = self.goal[:2]

    def _pre_action(self, action: np.ndarray, policy_step: bool = False) -> None:
        if policy_step:
            checked("action", action, 2)
            tip = self.sim.data._data.site(TIP_SITE).xpos
            self._command = target_pose(tip, action, self._command[:2])
        super()._pre_action(self._command, policy_step)

    def _post_action(self, action: np.ndarray) -> tuple[float, bool, dict[str, Any]]:
        check_stable(self.sim.data._data)  # MuJoCo's default state has the puck at the goal
        return super()._post_action(action)

    @property
    def action_spec(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of Δs_E in units of ``MAX_DISPLACEMENT``."""
        return -np.ones(2), np.ones(2)

    def reward(self, action: np.ndarray | None = None) -> float:
        """1 on success, 0 elsewhere."""
        return float(self._check_success())

    def _check_success(self) -> bool:
        data = self.sim.data._data
        q, v = puck_addresses(self.sim.model._model)
        position, velocity = data.qpos[q : q + 2], data.qvel[v : v + 2]
        return bool(
            np.hypot(*(position - self.goal[:2])) < self.success_distance
            and np.hypot(*(velocity - self.goal[2:])) < self.success_speed
        )

    def _check_robot_configuration(self, robots: list[str]) -> None:
        if list(robots) != ["Panda"]:
            raise ValueError(f"the pushing tasks are built for one Panda, not {robots}")


class PushSlot(PushPlane):
    """Push the puck from a reset grid around the walls into the slot.

    Builds with ``robosuite.make("PushSlot", robots="Panda", grids=1)``.
    """

    slot = SLOT
    default_success_speed = 0.02


def look_at(position: tuple[float, ...], target: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Pose of a MuJoCo camera (looks along −z, y up) that sees `target`, upright.

    Args:
        position: Camera centre, world frame [m].
        target: Point in the middle of the image, world frame [m].

    Returns:
        Position (3,) [m] and quaternion (4,) w, x, y, z.
    """
    eye, aim = np.asarray(position, float), np.asarray(target, float)
    z = (eye - aim) / np.linalg.norm(eye - aim)
    x = np.cross([0.0, 0.0, 1.0], z)
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z], axis=1)
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, rotation.flatten())
    return eye, quaternion


def _check_controller(config: dict[str, Any]) -> None:
    """Refuse a controller that would take the pusher's absolute target pose for something else."""
    wanted = {"type": "OSC_POSE", "input_type": "absolute", "input_ref_frame": "world"}
    arm = config.get("body_parts", {}).get("right", {})
    if any(arm.get(key) != value for key, value in wanted.items()):
        settings = ", ".join(f"{key} {value}" for key, value in wanted.items())
        raise ValueError(f"controller_configs: the pushing tasks need {settings}; start from envs.control.osc_config()")


def _box(name: str, position: tuple[float, ...], size: tuple[float, ...]) -> ET.Element:
    return ET.Element(
        "geom",
        {
            "name": name,
            "type": "box",
            "group": "1",
            "pos": " ".join(map(str, position)),
            "size": " ".join(map(str, size)),
            "friction": "0.1 0.005 0.0001",
            "rgba": "0.45 0.5 0.6 1",
        },
    )
