"""FetchPush of Gymnasium-Robotics in the plane: with a wall between cube and goal, and without for the play."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium_robotics.envs.fetch.push import MujocoFetchPushEnv

STEP = (
    0.5  # share of FetchPush's largest displacement that an action of 1 asks for: 25 mm, of which the hand goes 17 mm
)
TABLE = 0.4  # height of the table's surface [m]
Area = tuple[tuple[float, float], tuple[float, float]]  # lower and upper corner, xy, world frame [m]


class PushAround(MujocoFetchPushEnv):
    """FetchPush with a wall between the cube and the goal; starts and goals are uniform in an area each.

    The wall is higher than the cube, lower than the palm, and reaches from the table's near edge to x = 1.36 m. The
    camera "side" looks at the table from the side of the goals, where the hand seldom hides the cube.
    """

    start: ClassVar[Area] = ((1.23, 0.70), (1.27, 0.74))
    goals: ClassVar[Area] = ((1.23, 0.93), (1.27, 0.97))
    wall: ClassVar[Area | None] = ((1.05, 0.82), (1.36, 0.86))
    initial_qpos: Any  # of some joints by name, then of all

    def _initialize_simulation(self) -> None:
        """Build the model as FetchPush does, with a wall and a camera."""
        spec = mujoco.MjSpec.from_file(self.fullpath)
        if self.wall is not None:
            low, high = np.array(self.wall)
            size, position = [*(high - low) / 2, 0.03], [*(high + low) / 2, TABLE + 0.03]
            wall = spec.worldbody.add_geom(name="wall", type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=position)
            wall.rgba = [0.6, 0.3, 0.1, 1]
            # Contacts that are stiffer than the weld of the hand, which else squeezes the cube through the wall.
            wall.priority, wall.solref, wall.solimp = 1, [0.004, 1], [0.99, 0.999, 0.001, 0.5, 2]
        spec.worldbody.add_camera(name="side", pos=[1.3, 1.75, 1.3], xyaxes=[-1, 0, 0, 0, -0.68, 0.73], fovy=35)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self._model_names = self._utils.MujocoModelNames(self.model)
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = self.width, self.height
        self._env_setup(initial_qpos=self.initial_qpos)
        self.initial_time = self.data.time
        self.initial_qpos, self.initial_qvel = self.data.qpos.copy(), self.data.qvel.copy()

    def _reset_sim(self) -> bool:
        """Put the hand where it is after the construction, and the cube into the area of the starts."""
        super()._reset_sim()
        cube = self.data.joint("object0:joint").qpos
        cube[:2] = self._start()
        mujoco.mj_forward(self.model, self.data)
        return True

    def _start(self) -> np.ndarray:
        return self.np_random.uniform(*self.start)

    def _sample_goal(self) -> np.ndarray:
        return np.append(self.np_random.uniform(*self.goals), self.height_offset)


class PushAnywhere(PushAround):
    """FetchPush without a wall: cubes around the hand, goals around the cube."""

    start: ClassVar[Area] = ((-0.1, -0.1), (0.1, 0.1))  # relative to the hand
    goals: ClassVar[Area] = ((-0.15, -0.15), (0.15, 0.15))  # relative to the cube
    wall: ClassVar[Area | None] = None

    def _start(self) -> np.ndarray:
        offset = np.zeros(2)
        while np.linalg.norm(offset) < 0.06:  # [m]; the fingers and the cube would overlap
            offset = self.np_random.uniform(*self.start)
        return self.initial_gripper_xpos[:2] + offset

    def _sample_goal(self) -> np.ndarray:
        return super()._sample_goal() + np.append(self.data.body("object0").xpos[:2], 0.0)


class PlaneAction(gym.ActionWrapper):
    """Act by the horizontal displacement (dx, dy) of the hand, whose height is held; the gripper is closed."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def action(self, action: np.ndarray) -> np.ndarray:
        """Return the action of FetchPush: (dx, dy, dz) and the gripper, of which FetchPush keeps the fingers closed."""
        base: Any = self.unwrapped
        height = base.initial_gripper_xpos[2] - base.data.site("robot0:grip").xpos[2]
        return np.array([*STEP * np.asarray(action), height / 0.05, 0.0], np.float32)
