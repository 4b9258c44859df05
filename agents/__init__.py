"""Everything that knows Stable-Baselines3: SAC, pre-training, training, evaluation and comparison."""
