"""Pushing tasks as robosuite environments: table, puck, Panda with a rigid pusher, and a U-shaped slot."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo and robosuite then load without OpenGL)

# isort: split
import mujoco
import numpy as np
import robosuite
from robosuite import macros
from robosuite.environments.manipulation.manipulation_env import ManipulationEnv
from robosuite.models.tasks import ManipulationTask
from robosuite.utils.observables import Observable, sensor
from robosuite.utils.transform_utils import convert_quat

from envs.push.controller import Target, check_stable, osc_config
from envs.push.geometry import PUCK, SLOT, TABLE_HEIGHT, TABLE_SIZE, Puck, SlotGeometry, checked_puck
from envs.push.placement import PUCK_BODY, TIP_SITE, Placement, checked, place, puck_addresses
from envs.push.scene import GOAL_SITE, make_arena, make_puck
from envs.push.success import SUCCESS_DISTANCE, in_goal_set, lies_on_table
from envs.simulator import check_versions

GOAL_DECIMALS = 6  # of drawn goals [m, m/s], since MuJoCo writes six digits to the XML used for playback
ARENA = "16M"  # MuJoCo's memory for contacts and constraints; 1000 random steps use 0.03 MB


def above_zero(success_speed: float) -> float:
    """Return a success speed [m/s] after checking that it is above 0.

    Raises:
        ValueError: It is not above 0.
    """
    if not success_speed > 0:
        raise ValueError(f"success_speed is {success_speed}; it must be above 0 m/s")
    return success_speed


class PushPlane(ManipulationEnv):
    """Push the puck to a goal on the free table: the task in which the value estimator is pre-trained.

    Created by ``robosuite.make("PushPlane", robots="Panda")``. The action is the displacement of the end effector,
    Δs_E ∈ [−1, 1]² in units of ``MAX_DISPLACEMENT``; robosuite's operational-space controller holds height and
    orientation. All other arguments are those of robosuite.

    Args:
        robots: "Panda".
        grids: Number of active reset grids of the slot task, 1 to 3.
        success_speed: Speed of the puck relative to the goal below which a step can be a success [m/s]; defaults to
            `default_success_speed`.
        goal_speed: Largest goal velocity of the plane task, per axis [m/s].
        puck: Shape and friction of the puck: a `Puck`, or a mapping of its settings.
        use_object_obs: Whether observations include poses and velocities of puck and goal.
        reward_scale: Reward of success; None means 1.
        reward_shaping: Whether the reward includes the distance terms of `reward`.

    Raises:
        ValueError: An argument is not supported by the tasks.
    """

    slot: SlotGeometry | None = None
    success_distance = SUCCESS_DISTANCE
    default_success_speed = 0.1  # speed of the puck relative to the goal [m/s]

    def __init__(
        self,
        robots: str | list[str] = "Panda",
        grids: int = 1,
        success_speed: float | None = None,
        goal_speed: float = 0.05,
        puck: Puck | Mapping[str, Any] = PUCK,
        control_freq: float = 20,
        gripper_types: str = "Pusher",
        controller_configs: dict | None = None,
        initialization_noise: dict | str | None = None,
        hard_reset: bool = False,
        use_camera_obs: bool = False,
        use_object_obs: bool = True,
        reward_scale: float | None = 1.0,
        reward_shaping: bool = False,
        has_offscreen_renderer: bool = False,
        horizon: int = 1000,
        **kwargs: Any,
    ) -> None:
        check_versions(mujoco.__version__, robosuite.__version__)
        if gripper_types != "Pusher":
            raise ValueError(f"gripper_types is {gripper_types!r}; the pushing tasks are built for the Pusher")
        if initialization_noise is not None:
            raise ValueError(f"initialization_noise is {initialization_noise!r}; the start places the arm, give None")
        rate = round(1.0 / macros.SIMULATION_TIMESTEP)
        if control_freq <= 0 or rate % control_freq:
            raise ValueError(f"control_freq is {control_freq} Hz; physics runs at {rate} Hz, give a divisor such as 20")
        controller_configs = osc_config() if controller_configs is None else controller_configs
        _check_controller(controller_configs)
        self.placement = Placement(self.slot is not None, grids, goal_speed=goal_speed, puck=checked_puck(puck))
        self.success_speed = above_zero(self.default_success_speed if success_speed is None else success_speed)
        self.use_object_obs = use_object_obs
        self.reward_scale, self.reward_shaping = reward_scale, reward_shaping
        super().__init__(
            robots=robots,
            controller_configs=controller_configs,
            gripper_types=gripper_types,
            initialization_noise=initialization_noise,
            control_freq=control_freq,
            hard_reset=hard_reset,
            use_camera_obs=use_camera_obs,
            has_offscreen_renderer=has_offscreen_renderer,
            horizon=horizon,
            **kwargs,
        )

    @property
    def goal(self) -> np.ndarray:
        """Position and velocity of the goal, world frame, shape (4,) [m, m/s]; stored in the MuJoCo model."""
        return np.concatenate([self._goal_position, self._goal_velocity])

    @goal.setter
    def goal(self, goal: np.ndarray) -> None:
        self._goal_position[:], self._goal_velocity[:] = goal[:2], goal[2:]

    def _load_model(self) -> None:
        super()._load_model()
        robot = self.robots[0].robot_model
        robot.set_base_xpos(robot.base_xpos_offset["table"](TABLE_SIZE[0]))
        self.puck = make_puck(self.placement.puck)
        self.model = ManipulationTask(make_arena(self.slot), [robot], [self.puck])
        # robosuite reserves 1.3 GB of address space for 5000 contacts; forking several environments would fail.
        self.model.root.find("size").attrib = {"memory": ARENA}

    def _load_robots(self) -> None:
        super()._load_robots()
        for robot in self.robots:
            robot.robot_model.mujoco_model = None  # a model of the arm (50 MB) used by whole-body controllers only

    def _setup_references(self) -> None:
        super()._setup_references()
        model = self.sim.model._model
        self._puck_position, self._puck_velocity = puck_addresses(model)
        site = model.site(GOAL_SITE).id
        self._goal_position, self._goal_velocity = model.site_pos[site, :2], model.site_user[site, :2]
        self._target = Target(model, model.site(TIP_SITE).id)

    def _setup_observables(self) -> OrderedDict[str, Observable]:
        observables = super()._setup_observables()
        if self.use_object_obs:
            for name, read in self._object_sensors().items():
                observables[name] = Observable(name, sensor(modality="object")(read), sampling_rate=self.control_freq)
        return observables

    def _object_sensors(self) -> dict[str, Callable[[dict[str, np.ndarray]], np.ndarray]]:
        """Return sensors of puck and goal, world frame [m, m/s], read at the same time as robosuite's positions."""

        def puck() -> np.ndarray:
            return self.sim.data.get_body_xpos(PUCK_BODY).copy()

        def goal() -> np.ndarray:
            return np.append(self.goal[:2], TABLE_HEIGHT)

        return {
            "puck_pos": lambda cache: puck(),
            "puck_quat": lambda cache: convert_quat(self.sim.data.get_body_xquat(PUCK_BODY), to="xyzw"),
            "puck_vel": lambda cache: self.sim.data.qvel[self._puck_velocity :][:3].copy(),
            "goal_pos": lambda cache: goal(),
            "goal_vel": lambda cache: np.append(self.goal[2:], 0.0),
            "gripper_to_puck_pos": lambda cache: puck() - self.sim.data.get_site_xpos(TIP_SITE),
            "puck_to_goal_pos": lambda cache: goal() - puck(),
        }

    def _reset_internal(self) -> None:
        super()._reset_internal()
        if not self.deterministic_reset:
            puck, tip, goal = self.placement.sample(self.rng)
            self.reset_to(puck, tip, goal.round(GOAL_DECIMALS))

    def reset_to(self, puck_xy: np.ndarray, end_effector_xy: np.ndarray, goal: np.ndarray) -> None:
        """Place puck and end effector at rest at the given positions and set the goal.

        Args:
            puck_xy: Puck centre, world frame, shape (2,) [m].
            end_effector_xy: Tip of the pusher, world frame, shape (2,) [m].
            goal: Position and velocity of the goal, world frame, shape (4,) [m, m/s].
        """
        place(self.sim.model._model, self.sim.data._data, puck_xy, end_effector_xy, self.robots[0].init_qpos)
        self.goal = goal

    def _pre_action(self, action: np.ndarray, policy_step: bool = False) -> None:
        robot = self.robots[0]
        if policy_step:
            checked("action", action, 2)
            self._command = self._target.move(self.sim.data._data, action)
            robot.part_controllers["right"].new_update = True  # otherwise it uses the pose from before the reset
        robot.control(self._command, policy_step)

    def _post_action(self, action: np.ndarray) -> tuple[float, bool, dict[str, Any]]:
        check_stable(self.sim.data._data)  # in MuJoCo's default state the puck is at the goal: a false success
        self._target.keep(self.sim.data._data, self._target.position)
        return super()._post_action(action)

    @property
    def action_spec(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of Δs_E in units of ``MAX_DISPLACEMENT``."""
        return -np.ones(2), np.ones(2)

    @property
    def action_dim(self) -> int:
        """Size of an action; the controller's own action, the pose of the tip, has size 6."""
        return 2

    def reward(self, action: np.ndarray | None = None) -> float:
        """Return 1 on success and 0 otherwise, times `reward_scale`.

        With `reward_shaping`, the reward without success is 0.25·(1 − tanh 10‖p_PE‖) + 0.5·(1 − tanh 10‖p_PG‖), times
        `reward_scale`; ‖p_PE‖ and ‖p_PG‖ are the distances of the puck from end effector and goal in the plane [m].
        """
        reward = float(self._check_success())
        if self.reward_shaping and not reward:
            puck = self._achieved()[:2]
            tip = self.sim.data.get_site_xpos(TIP_SITE)[:2]
            distances = np.linalg.norm([puck - tip, puck - self.goal[:2]], axis=1)
            reward = float((1.0 - np.tanh(10.0 * distances)) @ [0.25, 0.5])
        return reward * (1.0 if self.reward_scale is None else self.reward_scale)

    def _achieved(self) -> np.ndarray:
        """Return position and velocity of the puck in the plane, world frame, shape (4,) [m, m/s]."""
        q, v = self._puck_position, self._puck_velocity
        return np.concatenate([self.sim.data.qpos[q : q + 2], self.sim.data.qvel[v : v + 2]])

    def _check_success(self) -> bool:
        q, achieved = self._puck_position, self._achieved()
        reached = in_goal_set(achieved, self.goal, self.success_distance, self.success_speed)
        return bool(reached and lies_on_table(self.sim.data.qpos[q : q + 7]))

    def visualize(self, vis_settings: dict[str, bool]) -> None:
        """Apply robosuite's visualization and, with "grippers", show the tip: green at the puck, red far from it."""
        super().visualize(vis_settings=vis_settings)
        self.sim.model.site_rgba[self._target.site, 3] = float(vis_settings["grippers"])
        if vis_settings["grippers"]:
            self._visualize_gripper_to_target(gripper=self.robots[0].gripper, target=self.puck)

    def _check_robot_configuration(self, robots: list[str]) -> None:
        if list(robots) != ["Panda"]:
            raise ValueError(f"the pushing tasks are built for one Panda, not {robots}")


class PushSlot(PushPlane):
    """Push the puck from a reset grid around the walls into the slot.

    Created by ``robosuite.make("PushSlot", robots="Panda", grids=1)``.
    """

    slot = SLOT
    default_success_speed = 0.02


def _check_controller(config: dict[str, Any]) -> None:
    """Check that a controller interprets its action as an absolute pose in the world frame, or raise ValueError."""
    wanted = {"type": "OSC_POSE", "input_type": "absolute", "input_ref_frame": "world"}
    arm = config.get("body_parts", {}).get("right", {})
    if any(arm.get(key) != value for key, value in wanted.items()):
        settings = ", ".join(f"{key} {value}" for key, value in wanted.items())
        raise ValueError(
            f"controller_configs: the pushing tasks need {settings}; start from envs.push.controller.osc_config()"
        )
