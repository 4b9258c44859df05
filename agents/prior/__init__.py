"""Pre-training of the goal-conditioned value Ṽ_g: learning, regression and calibration."""
