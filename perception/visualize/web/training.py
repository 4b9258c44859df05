"""A training in the background, and its curve."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from jaxtyping import Float

from agents.runs.log import PROGRESS, read_progress

RATE = "eval/success_rate"
SHARES = (-0.03, 1.05)  # range of an axis of success rates, so that a curve at 0 or 1 is within it


def success_curve(run: Path) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Read environment steps and success rates of the evaluations of a run, shape (points,) each; maybe of none yet.

    Raises:
        ValueError: The log is damaged.
    """
    path = run / PROGRESS
    rows = read_progress(path) if path.exists() else []
    points = np.array([(row["step"], row[RATE]) for row in rows if RATE in row], dtype=float).reshape(-1, 2)
    return points[:, 0], points[:, 1]


class Training:
    """Process of `agents.train` on a file of demonstrations; the run directory is beside the file.

    Args:
        demonstrations: HDF5 file.
        obs: Observation of the agent.
        method: Method, as for agents.train.
        steps: Environment steps.
        grids: Number of active reset grids.

    Raises:
        ValueError: There is a run of this file, observation and method already.
    """

    def __init__(self, demonstrations: Path, obs: str, method: str, steps: int, grids: int = 1) -> None:
        self.run = demonstrations.with_suffix("") / f"{obs}-{method}"
        if self.run.exists():
            raise ValueError(
                f"{self.run}: exists already; python -m agents.train --resume {self.run} continues it, another file or "
                "method starts anew"
            )
        self._log = self.run.with_name(f"{self.run.name}.log")
        self._log.parent.mkdir(parents=True, exist_ok=True)
        words = {"demonstrations": demonstrations, "obs": obs, "method": method, "steps": steps, "grids": grids}
        words["out"] = self.run
        command = [sys.executable, "-m", "agents.train", *(str(w) for k, v in words.items() for w in (f"--{k}", v))]
        with self._log.open("w") as output:
            # A session of its own: Ctrl-C in the terminal of the page reaches the training once, through `stop`.
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def curve(self) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
        """Return `success_curve` of the run."""
        return success_curve(self.run)

    def summary(self) -> str:
        """Return one line about the run."""
        steps, rates = self.curve()
        last = f"{100 * rates[-1]:.0f} % after {steps[-1]:.0f} steps" if len(steps) else "no evaluation yet"
        if self.running:
            return f"training {self.run}: {last}"
        status = self._process.returncode
        if status == 0:
            return f"finished {self.run}: {last}"
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"ended {self.run} with status {status}: {lines[-1] if lines else last}"

    def stop(self) -> None:
        """Interrupt the training, which then writes a checkpoint."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """Interrupt the training, and wait for its end."""
        self.stop()
        self._process.wait()
