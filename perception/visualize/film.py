"""Video of a demonstration: the image with the sampled points, and curves up to the current step."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from perception.video import open_video
from perception.visualize.panel import POINTS_STYLE

COLORS = {"Φ": "#ff2fa0", "V_d": "#3b528b", "Ṽ_g": "#5ec962"}
LABELS = {"V_d": "V_d of the chosen state", "Ṽ_g": "Ṽ_g to the chosen state"}
SIZE = (960, 480)  # multiples of 16, as H.264 requires [pixels]
DPI = 100


class Film:
    """Renders the frames of the video; the parts that do not change are created once.

    Args:
        title: Label of the curves.
        curves: Values by name, shape (H + 1,) each.
        size: Width and height of the images [pixels].
    """

    def __init__(self, title: str, curves: Mapping[str, Float[np.ndarray, " steps"]], size: tuple[int, int]) -> None:
        figure = Figure(figsize=(SIZE[0] / DPI, SIZE[1] / DPI), dpi=DPI)
        self._canvas = FigureCanvasAgg(figure)
        image = figure.add_axes((0, 0, 0.5, 1))
        image.axis("off")
        self._image = image.imshow(np.zeros((size[1], size[0], 3), np.uint8), extent=(0, size[0], size[1], 0))
        self._points = image.scatter([], [], **POINTS_STYLE)
        plot = figure.add_axes((0.58, 0.2, 0.39, 0.7))
        self._curves = dict(curves)
        style: dict[str, Any] = {"lw": 2, "marker": "o", "markevery": [-1], "clip_on": False}
        self._lines = {
            name: plot.plot([], [], color=COLORS.get(name), label=LABELS.get(name, name), **style)[0] for name in curves
        }
        self._now = plot.set_title("")
        plot.set_xlim(0, max(len(values) for values in curves.values()) - 1)
        plot.set_ylim(0, 1.05 * max(1.0, *(values.max() for values in curves.values())))
        plot.set_xlabel("step")
        plot.set_ylabel(title)
        plot.grid(alpha=0.3)
        plot.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, fontsize=8, frameon=False)

    def frame(
        self, step: int, rgb: UInt8[np.ndarray, "height width 3"], pixels: Float[np.ndarray, "num_points 2"]
    ) -> UInt8[np.ndarray, "rows columns 3"]:
        """Draw one frame: the image of a step with points at (column, row) [pixels], and the curves up to the step."""
        self._image.set_data(rgb)
        self._points.set_offsets(pixels)
        for name, line in self._lines.items():
            line.set_data(np.arange(step + 1), self._curves[name][: step + 1])
        now = ", ".join(f"{name} {values[step]:.3f}" for name, values in self._curves.items())
        self._now.set_text(f"step {step}: {now}")
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()


def write_film(path: Path, frames: Iterable[UInt8[np.ndarray, "rows columns 3"]]) -> None:
    """Write frames to a file, .mp4 or .gif."""
    with open_video(path) as append:
        for frame in frames:
            append(frame)


def film_suffix() -> str:
    """Return ".mp4" if imageio finds ffmpeg, otherwise ".gif"."""
    try:
        import imageio_ffmpeg

        imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return ".gif"
    return ".mp4"
