"""Settings of the command `perception.diagnose`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from envs.ranges import SEED, Range
from perception.noise import RANGES


@dataclass(frozen=True)
class DiagnoseConfig:
    """Measure how much of the slot task's state is in the clouds that cameras give along the episodes of a policy.

    Every camera is judged on the same frames, alone and, with several, fused. Prints a table and what to change first,
    and writes diagnosis.png and diagnosis.md.
    """

    cameras: tuple[str, ...] = ("overhead",)
    """Cameras, e.g. overhead oblique."""
    renderer: str = "ray"
    """Renderer of the puck's depth and mask: ray or gl."""
    grids: Literal[1, 2, 3] | None = None
    """Number of active reset grids; default: 1, or that of the run."""
    policy: Literal["expert", "random"] | None = None
    """Policy that plays the episodes, the hand-coded expert (default) or uniformly random actions."""
    run: Path | None = None
    """Run directory or checkpoint whose agent plays the episodes."""
    imports: tuple[str, ...] = ()
    """Encoder of your own that the run uses, as module:Name."""
    episodes: Annotated[int, Range(2, 200)] = 20
    """Episodes; every other one is held out for the probe, which needs about ten. All frames are kept in memory, with
    two cameras at most 0.08 MB each."""
    seed: Annotated[int, SEED] = 0
    """Seed of the first episode; episode i is reset with seed + i."""
    depth_noise: Annotated[float, RANGES["depth"]] = 0.0015
    """Standard deviation of the depth at 1 m, where it grows with the square of the depth; default: a Kinect's [m]."""
    extrinsics_noise: tuple[float, float] = (0.002, 0.2)
    """Standard deviations of a camera's calibrated position [m] and orientation [degrees] per axis, once per
    episode."""
    dropped: Annotated[float, RANGES["dropped"]] = 0.0
    """Share of the puck's pixels without depth, with the noise."""
    estimator: Path | None = None
    """Estimator whose encoder is probed; default: the shipped one for clouds."""
    encoder: str | None = None
    """Registered encoder, or module:Name of your own, that is probed with random weights instead."""
    out: Path = Path("runs/diagnose")
    """Directory to write to."""
    overwrite: bool = False
    """Replace existing files."""
