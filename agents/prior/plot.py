"""Plot of the calibration of Ṽ_g."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from agents.prior.calibration import Calibration
from perception.picture import write_picture


def plot_calibration(calibration: Calibration, path: Path) -> None:
    """Plot Ṽ_g and γ^n over n: one point per environment step, and the mean for each n."""
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    n = calibration.remaining
    axes.scatter(n, calibration.values, s=3, alpha=0.15, color="tab:blue", label="one step")
    steps = np.unique(n)
    axes.plot(steps, [calibration.values[n == k].mean() for k in steps], color="tab:blue", label="mean")
    axes.plot(steps, calibration.gamma**steps, color="black", linestyle="--", label="γⁿ")
    axes.set(xlabel="steps n until the goal", ylabel="value Ṽ_g", ylim=(0.3, 1.05))
    axes.legend()
    write_picture(figure, path, dpi=120)
