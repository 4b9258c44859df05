"""Demonstrations from a path along which the puck was dragged by hand, or from an arm that was led by hand."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from envs.demonstrations import Trajectory
from envs.push.success import STEP, in_goal_set
from perception.visualize.scene import Scene
from perception.visualize.web.hand import tip_behind


def demonstrate_path(scene: Scene, path: Sequence[Float[np.ndarray, "2"]]) -> Trajectory:
    """Return the demonstration of a puck that was moved along a path, without actions.

    The puck stands flat on each point of the path in turn, and rests on the last. The pusher follows it on its own path
    (`tip_behind`), so that the columns of an observation relative to the end effector are those of a push; the
    demonstrated goals and Φ do not depend on them. Velocities are the mean ones of the step before.

    Args:
        scene: Task and cameras, which render the clouds.
        path: Centres of the puck, one control step apart, shape (2,) each [m].

    Raises:
        ValueError: The path has no step or ends outside the goal set, or the camera does not see the puck everywhere.
    """
    if len(path) < 2:
        raise ValueError("the puck was not moved; drag it around the slot's wall and into the slot")
    path = [*path, path[-1]]
    rows: dict[str, list[np.ndarray]] = {"state": [], "pointcloud": [], "puck_pose": []}
    tips = []
    for step, puck in enumerate(path):
        tips.append(tip_behind(path[: step + 1]) if step else tip_behind([path[0], path[1]]) + path[0] - path[1])
        cloud, info = scene.env.reset(options={"puck": puck, "end_effector": tips[-1]})
        if not info["puck_visible"]:
            raise ValueError(
                f"{', '.join(scene.cameras)} does not see the puck at step {step} of {len(path) - 1}; "
                "drag it another way, or add a camera by --cameras overhead oblique"
            )
        state = scene.base.state_observation()
        speed = (puck - path[max(step - 1, 0)]) / STEP
        state[2:4], state[6:8] = speed - (tips[-1] - tips[max(step - 1, 0)]) / STEP, speed
        for name, row in (("state", state), ("pointcloud", cloud), ("puck_pose", scene.base.puck_pose)):
            rows[name].append(row)
    _check_end(scene, path[-1])
    return Trajectory({name: np.stack(of_name) for name, of_name in rows.items()}, name="by hand")


def _check_end(scene: Scene, puck: Float[np.ndarray, "2"]) -> None:
    """Check that a puck at rest is in the goal set.

    Raises:
        ValueError: It is not.
    """
    goal, near = scene.base.goal_position, scene.base.robosuite.success_distance
    if not in_goal_set(np.append(puck, [0, 0]), np.append(goal, [0, 0]), near, scene.base.success_speed):
        away = 100 * float(np.linalg.norm(puck - goal))
        raise ValueError(f"the puck ends {away:.1f} cm from the goal; drag it to less than {100 * near:g} cm")
