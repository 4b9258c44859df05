"""Observe the cube of robosuite's Lift by two cameras, one of them on the wrist; draw depth, mask and cloud."""

from pathlib import Path

import numpy as np
import robosuite
from matplotlib.figure import Figure
from robosuite.wrappers import GymWrapper

from perception import PointCloudObservation, make_renderer
from perception.picture import write_picture
from perception.simulation import simulation

CAMERAS, GRIP = ["agentview", "robot0_eye_in_hand"], "gripper0_right_grip_site"
HEADLESS = {"has_renderer": False, "has_offscreen_renderer": False, "use_camera_obs": False}
lift = robosuite.make("Lift", robots="Panda", seed=0, **HEADLESS)
env = PointCloudObservation(GymWrapper(lift), CAMERAS, num_points=64, objects=["cube"], relative_to=[GRIP, "cube"])
env.reset()
for _ in range(20):
    observation, *others, info = env.step(np.array([0.0, 0.0, -0.2, 0.0, 0.0, 0.0, 0.0]))  # down, towards the cube
model, data = simulation(env)
offset = env.points_world - data.body("cube_main").xpos
outside = np.abs(offset @ data.body("cube_main").xmat.reshape(3, 3)) - model.geom("cube_g0_vis").size
print(f"cloud {observation.shape}: [p − gripper, p − cube]; cube visible: {info['puck_visible']}")
print(f"every point is within {1000 * np.abs(outside.max(axis=1)).max():.3f} mm of a face of the cube; the centroid")
print(f"of the faces that are seen is {1000 * np.linalg.norm(offset.mean(axis=0)):.1f} mm from the cube's centre")

figure = Figure(figsize=(10, 6), layout="constrained")
for row, camera in enumerate(CAMERAS):
    renderer = make_renderer("gl", model, camera, "cube", 128, 128)
    depth, mask = renderer.render(data)
    renderer.close()
    for column, (image, title) in enumerate([(np.minimum(depth, 2), "depth up to 2 m"), (mask, "mask")]):
        axes = figure.add_subplot(2, 3, 3 * row + column + 1, title=f"{camera}\n{title}")
        axes.imshow(image)
        axes.axis("off")
figure.add_subplot(1, 3, 3, projection="3d", title="64 points, world frame [m]").scatter(*env.points_world.T)
write_picture(figure, Path("lift.png"))
env.close()
