"""The slot task with another puck: ``python -m agents.train --task assets.examples.other_puck.tasks:box``.

Environment and demonstration are those of the other puck. The prior is the shipped one, learned with the default puck.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import gymnasium as gym

from agents.tasks import Task, get_task
from envs.push.geometry import Puck

HERE = Path(__file__).parent
PUCKS = {"box": Puck("box"), "slippery": Puck(friction=0.1), "slippery-box": Puck("box", friction=0.1)}


def task(name: str) -> Task:
    """Make the slot task of a puck with its demonstration."""
    make = partial(gym.make, "PushSlot-v0", puck=PUCKS[name])
    return replace(get_task("push-slot"), make=make, demonstrations={1: HERE / f"{name}.hdf5"})


box, slippery, slippery_box = map(task, PUCKS)
