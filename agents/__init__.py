"""Everything that knows Stable-Baselines3: SAC, pre-training, training, evaluation and comparison."""

import os

# Read when NumPy is loaded. With more threads its sums are rounded otherwise, and contacts make other episodes of that.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
