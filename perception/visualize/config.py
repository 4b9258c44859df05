"""Settings of the command."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from envs.ranges import SEED, Range


@dataclass(frozen=True)
class VisualizeConfig:
    """Draw what the cameras see of the slot task, the puck's points, and the potential that guides the agent.

    Writes panel.png, cloud.ply (the puck), scene.ply (everything), demonstration.mp4 and potential.png.
    """

    out: Path = Path("runs/visualize")
    """Directory to write to."""
    demonstrations: Path | None = None
    """HDF5 file of demonstrations; the shipped one for the number of grids if not given."""
    filter_key: str | None = None
    """Take the demonstrations that this mask of the file lists, e.g. train; all if not given."""
    estimator: Path | None = None
    """Pre-trained value estimator, of states or clouds; both shipped ones if not given."""
    grids: Literal[1, 2, 3] = 1
    """Number of active reset grids."""
    renderer: str = "ray"
    """What the puck's depth and mask come from: ray or gl."""
    cameras: tuple[str, ...] = ("overhead",)
    """Cameras whose clouds are fused, e.g. overhead oblique."""
    combine: Literal["product", "sum"] = "product"
    """V_d·Ṽ_g (γ to all remaining steps) or V_d + Ṽ_g (the paper)."""
    radius: Annotated[float, Range(0, 100, "(]")] = 0.08
    """Largest distance of the puck to a demonstrated goal in Δ(s) [m]."""
    seed: Annotated[int, SEED] = 1
    """Seed of the start that is shown."""
    window: bool = False
    """Show the clouds in Open3D's window at the end; needs a display."""
    overwrite: bool = False
    """Replace pictures that are there already."""
