"""Record a demonstration: ``python -m assets.examples.fetch_push.demonstrate``.

The hand moves around the cube to the side opposite to the next anchor, and pushes the cube there.
"""

from typing import Any

import numpy as np

from assets.examples.fetch_push.environment import PushAround
from assets.examples.fetch_push.tasks import HERE, STEPS, make_push, observe_cloud, state
from envs.demonstrations import Trajectory, save_demonstrations

ANCHORS = (1.43, 0.72), (1.42, 0.95)  # path of the cube around the end of the wall, xy [m]
DETOUR = 0.07  # distance of the hand from the cube's centre on the way around it [m]
ALIGNED, LOST = np.deg2rad(15.0), np.deg2rad(40.0)  # angles at which a push starts and is abandoned [rad]
REACHED = 0.03  # distance at which an anchor counts as reached [m]
SETTLED = 0.02  # distance from the goal at which the demonstration ends, in the goal set of states and clouds [m]
TRAVEL, PUSH = 1.0, 0.7  # length of the action, without and with the cube
STEERING = 10.0  # part of the action that brings the hand back behind the cube, per distance [1/m]


class Pusher:
    """Controller that pushes the cube around the wall, in a closed loop on positions.

    Args:
        goal: Position of the goal, world frame, xy, shape (2,) [m].
    """

    def __init__(self, goal: np.ndarray) -> None:
        self.anchors = [*map(np.array, ANCHORS), goal]
        self._pushing = False

    def act(self, cube: np.ndarray, hand: np.ndarray) -> np.ndarray:
        """Return the action, shape (2,) in [−1, 1], for the positions of cube and hand, world frame, xy [m]."""
        if len(self.anchors) > 1 and np.linalg.norm(self.anchors[0] - cube) < REACHED:
            del self.anchors[0]
            self._pushing = False
        direction = (self.anchors[0] - cube) / np.linalg.norm(self.anchors[0] - cube)
        angle = _angle(-direction) - _angle(hand - cube)
        self._pushing = abs(angle) < (LOST if self._pushing else ALIGNED)
        if self._pushing:
            aside = hand - cube - (hand - cube) @ direction * direction
            return (PUSH * direction - STEERING * aside).astype(np.float32)
        ahead = _angle(hand - cube) + np.clip(angle, -0.5, 0.5)
        step = cube + DETOUR * np.array([np.sin(ahead), -np.cos(ahead)]) - hand
        length = np.linalg.norm(step)
        return (step / max(length, 1e-9) * min(TRAVEL, 40.0 * length)).astype(np.float32)


def _angle(offset: np.ndarray) -> float:
    """Return the angle of an offset from −y, in [−π, π]: the hand does not move between the cube and the wall, +y."""
    return float(np.arctan2(offset[0], -offset[1]))


def demonstrate(seed: int = 0) -> Trajectory:
    """Push the cube around the wall once, and observe it as a state and as a cloud."""
    env = observe_cloud(make_push(PushAround, STEPS))
    base: Any = env.unwrapped
    cloud, _ = env.reset(seed=seed)
    pusher = Pusher(base.goal[:2])
    states, clouds = [state(base._get_obs())], [cloud]
    actions: list[np.ndarray] = []
    while np.linalg.norm(states[-1][4:6]) > SETTLED:
        assert len(actions) < STEPS, f"the controller did not reach the goal in {STEPS} steps"
        cube, hand = base.data.body("object0").xpos[:2], base.data.site("robot0:grip").xpos[:2]
        actions.append(pusher.act(cube, hand))
        cloud, *_ = env.step(actions[-1])
        states.append(state(base._get_obs()))
        clouds.append(cloud)
    env.close()
    return Trajectory({"state": np.stack(states), "pointcloud": np.stack(clouds)}, np.stack(actions), seed=seed)


if __name__ == "__main__":
    shown = demonstrate()
    described = {"env_name": "FetchPush-v4", "type": 2, "env_kwargs": {}}
    save_demonstrations(HERE / "push-around.hdf5", [shown], described, overwrite=True)
    print(f"push-around.hdf5: {shown.horizon} steps")
