"""The world: pushing tasks in robosuite, their Gymnasium adapter, expert and demonstrations."""

import logging
import os
import sys

# Read when NumPy and SciPy are loaded. With more threads BLAS rounds otherwise, and contacts make other episodes of it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gymnasium as gym

from envs.push.registration import register_with_robosuite

# MuJoCo reads this when it is imported, and would otherwise ask for a display.
if sys.platform == "linux":
    os.environ.setdefault("MUJOCO_GL", "egl")

# robosuite tells of optional packages on every import; a command that fails should end in one line.
logging.getLogger("robosuite_logs").addFilter(lambda record: record.levelno >= logging.ERROR)

gym.register("PushSlot-v0", entry_point="envs.push.make:make_push", kwargs={"task": "push-slot"})
gym.register("PushPlane-v0", entry_point="envs.push.make:make_push", kwargs={"task": "push-plane"})
register_with_robosuite()
