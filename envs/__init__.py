"""Pushing tasks in robosuite, their Gymnasium environment, the expert and the demonstrations."""

import logging
import os
import sys

# NumPy and SciPy read this on import. The rounding of BLAS depends on its number of threads, and contacts amplify the
# difference until episodes are no longer the same.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gymnasium as gym

from envs.push.registration import register_with_robosuite

# MuJoCo reads this on import; by default it needs a display.
if sys.platform == "linux":
    os.environ.setdefault("MUJOCO_GL", "egl")

# robosuite logs missing optional packages on every import; a command that fails should print one line only.
logging.getLogger("robosuite_logs").addFilter(lambda record: record.levelno >= logging.ERROR)

gym.register("PushSlot-v0", entry_point="envs.push.make:make_push", kwargs={"task": "push-slot"})
gym.register("PushPlane-v0", entry_point="envs.push.make:make_push", kwargs={"task": "push-plane"})
register_with_robosuite()
