"""Set-up shared by all tests."""

import os

# Before MuJoCo is imported: render without a display, one thread in each worker.
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("OMP_NUM_THREADS", "1")
