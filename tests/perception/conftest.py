"""One small scene, varied by snippets of MJCF."""

from collections.abc import Callable

import mujoco
import numpy as np
import pytest

PUCK_RADIUS, PUCK_HALF_HEIGHT, TABLE_HEIGHT = 0.03, 0.015, 0.8

PUCK = f"""
<body name="puck_main" pos="0.05 -0.04 {TABLE_HEIGHT + PUCK_HALF_HEIGHT}">
  <freejoint/>
  <geom name="puck_g0" type="cylinder" size="{PUCK_RADIUS} {PUCK_HALF_HEIGHT}" group="0"/>
  <geom name="puck_g0_vis" type="cylinder" size="{PUCK_RADIUS} {PUCK_HALF_HEIGHT}" group="1" rgba=".9 .1 .1 1"
        contype="0" conaffinity="0" mass="0"/>
</body>
"""

SCENE = """
<mujoco>
  <visual><global offwidth="64" offheight="64"/></visual>
  <asset>
    <mesh name="wedge" vertex="-.05 -.05 -.05  .05 -.05 -.05  0 .05 -.05  0 0 .08"/>
  </asset>
  <worldbody>
    {before}
    <geom name="floor" type="plane" size="3 3 .1" group="1"/>
    <camera name="overhead" pos="0.02 0.03 1.5" xyaxes="0 -1 0 1 0 0" fovy="45"/>
    <camera name="oblique" pos=".5 -.4 1.3" xyaxes=".6247 .7809 0 -.4604 .3683 .8077" fovy="50"/>
    <body name="table" pos="0 0 .775">
      <geom name="table_collision" type="box" size=".4 .4 .025" group="0"/>
      <geom name="table_visual" type="box" size=".4 .4 .025" group="1" contype="0" conaffinity="0"/>
    </body>
    {puck}
    {after}
  </worldbody>
</mujoco>
"""


@pytest.fixture
def scene() -> Callable[..., tuple[mujoco.MjModel, mujoco.MjData]]:
    def build(before: str = "", after: str = "", puck: str = PUCK) -> tuple[mujoco.MjModel, mujoco.MjData]:
        model = mujoco.MjModel.from_xml_string(SCENE.format(before=before, after=after, puck=puck))
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        return model, data

    return build


@pytest.fixture
def place_puck() -> Callable[..., None]:
    def place(
        model: mujoco.MjModel, data: mujoco.MjData, position: np.ndarray, quaternion: np.ndarray | None = None
    ) -> None:
        address = model.jnt_qposadr[model.body("puck_main").jntadr[0]]
        data.qpos[address : address + 3] = position
        if quaternion is not None:
            data.qpos[address + 3 : address + 7] = quaternion / np.linalg.norm(quaternion)
        mujoco.mj_forward(model, data)

    return place
