"""Draw four frames of the demonstration as the camera sees them: ``python -m assets.examples.fetch_push.scene``."""

from typing import Any

import mujoco
from matplotlib.figure import Figure

from assets.examples.fetch_push.environment import PushAround
from assets.examples.fetch_push.tasks import HERE, STEPS, make_push
from envs.demonstrations import read_demonstrations
from perception.picture import write_picture

if __name__ == "__main__":
    (shown,) = read_demonstrations(HERE / "push-around.hdf5")
    assert shown.actions is not None
    env = make_push(PushAround, STEPS)
    env.reset(seed=shown.seed)
    base: Any = env.unwrapped
    renderer = mujoco.Renderer(base.model, 200, 240)
    frames = []
    for action in shown.actions:
        base._render_callback()  # which moves the red sphere to the goal
        renderer.update_scene(base.data, "side")
        frames.append(renderer.render())
        env.step(action)
    figure = Figure(figsize=(9.6, 2.3), layout="constrained")
    for column, step in enumerate([0, 34, 62, len(frames) - 1]):
        axes = figure.add_subplot(1, 4, column + 1, title=f"step {step}")
        axes.imshow(frames[step])
        axes.axis("off")
    write_picture(figure, HERE / "scene.png", dpi=80)
    renderer.close()
    env.close()
