"""Everything that knows Stable-Baselines3: SAC, pre-training, training, evaluation and comparison."""

import envs  # noqa: F401 (first: it limits the threads of BLAS before NumPy is loaded)
