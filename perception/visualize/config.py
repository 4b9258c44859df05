"""Settings of the command `perception.visualize`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from envs.ranges import SEED, Range

SLOT = "push-slot"
OF_OWN = ("obs", "axes")
"""Settings that only tasks of the user have."""
OF_SLOT = ("renderer", "cameras", "window", "web", "run", "imports", "port", "host")
"""Settings that only the slot task has."""
OF_WEB, OF_FILES = ("run", "imports", "port", "host"), ("out", "seed", "window", "overwrite")
"""Settings of the slot task's page, and those of the files that are written without it."""


@dataclass(frozen=True)
class VisualizeConfig:
    """Draw camera images of the slot task, the point cloud of the puck, and the potential that shapes the reward.

    Writes panel.png, cloud.ply (the puck), scene.ply (the whole scene), demonstration.mp4 and potential.png; of a task
    of your own potential.png, over two numbers of its goals.
    """

    task: str = SLOT
    """Registered task, or module:Name of your own."""
    obs: str | None = None
    """Observation of a task of your own; default: its first."""
    axes: Annotated[tuple[int, int], Range(0, 1000)] = (0, 1)
    """Numbers of a goal of your own task along the axes of the map."""
    out: Path = Path("runs/visualize")
    """Directory to write to."""
    demonstrations: Path | None = None
    """HDF5 file of demonstrations; defaults to the shipped file for the number of grids."""
    filter_key: str | None = None
    """Use only the demonstrations listed by this mask of the file, e.g. train; defaults to all."""
    estimator: Path | None = None
    """Pre-trained value estimator, of states or clouds; defaults to both shipped estimators."""
    grids: Literal[1, 2, 3] = 1
    """Number of active reset grids; with --run at least those of the run."""
    renderer: str = "ray"
    """Renderer of the puck's depth and mask: ray or gl."""
    cameras: tuple[str, ...] = ("overhead",)
    """Cameras whose clouds are fused, e.g. overhead oblique."""
    combine: tuple[Literal["product", "sum"], ...] = ("product",)
    """V_d·Ṽ_g (γ to all remaining steps) or V_d + Ṽ_g (the paper); with several, one row of maps for each."""
    radius: Annotated[tuple[float, ...] | None, Range(0, 100, "(]")] = None
    """Largest distance from the puck to a demonstrated goal in Δ(s) [m]; with several, one row of maps for each.
    Default: 0.08, or that of your own task."""
    seed: Annotated[int, SEED] = 1
    """Seed of the initial state that is drawn."""
    window: bool = False
    """Show the clouds in Open3D's window at the end; requires a display."""
    overwrite: bool = False
    """Replace existing files."""
    web: bool = False
    """Serve a web page instead of writing files: scene, clouds and potential of any episode, demonstrations by hand."""
    run: Path | None = None
    """Run directory whose agent, curves and episodes the page shows."""
    imports: tuple[str, ...] = ()
    """Encoder of your own that the run uses, as module:Name."""
    port: Annotated[int, Range(0, 65535)] = 8080
    """Port of the page; 0 takes any that is free."""
    host: str = "127.0.0.1"
    """Address of the page; 0.0.0.0 lets other machines see it, and use this one, without a password."""
