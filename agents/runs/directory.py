"""Files of a run directory, and functions to read and write them; nothing in the files is executed."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

from agents.config import TrainConfig
from agents.config.file import describe, read_config_file
from agents.methods.encoder import encoder_name
from agents.tasks import get_task
from envs.files import read_regular, write_text

CONFIG, RESULT, POLICY, BEST, CHECKPOINTS = "config.json", "result.json", "policy.pt", "best.pt", "checkpoints"


class Result(TypedDict):
    """What is needed of `result.json`."""

    success_rate: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    mean_steps: float | None
    environment_steps: int
    seconds: float
    others: NotRequired[float]
    demonstrations: NotRequired[int]


def run_name(config: TrainConfig, variations: Sequence[str] = ()) -> str:
    """Return the default name of a run directory, which names the encoder if it is not that of the observation.

    Args:
        config: Configuration of the run.
        variations: Further settings, such as "learner.tau=0.01".
    """
    encoder = encoder_name(config)
    named = [] if encoder == get_task(config.task).view(config.obs).encoder else [f"encoder={encoder}"]
    preset = "" if config.preset == "default" else f"-{config.preset}"
    varied = "".join(f"-{variation}" for variation in (*named, *variations))
    name = f"{config.task}-{config.grids}-{config.obs}-{config.method}{preset}{varied}-seed{config.seed}"
    return name.replace(":", ".").replace("/", "_")  # which are no part of a file's name everywhere


def read_config(directory: Path) -> TrainConfig:
    """Read the configuration stored in a run directory.

    Raises:
        FileNotFoundError: The directory is not a run directory.
        ValueError: The configuration is damaged.
    """
    try:
        return read_config_file(directory / CONFIG)
    except FileNotFoundError:
        raise FileNotFoundError(f"{directory} is not a run directory: it has no {CONFIG}") from None


def read_result(directory: Path) -> dict[str, Any]:
    """Read the result of a finished run.

    Raises:
        FileNotFoundError: The run has not finished.
        ValueError: The result is damaged.
    """
    path = directory / RESULT
    try:
        content = read_regular(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{directory} has no {RESULT}: no run has finished there") from None
    try:
        result = json.loads(content)
        TypeAdapter(Result).validate_python(result, strict=True)
    except (ValueError, RecursionError) as error:
        reason = describe(error) if isinstance(error, ValidationError) else error
        raise ValueError(f"{path} is damaged ({reason})") from error
    return result


def write_result(directory: Path, result: dict[str, Any]) -> None:
    """Write `result.json`, then add the run directory and the list of its files to `result`."""
    write_text(directory / RESULT, json.dumps(result, indent=2) + "\n")
    files = sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))
    result |= {"directory": str(directory), "files": files}


def revision() -> str:
    """Return the version of the source code: `git describe` of a checkout, else "unknown"."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace").strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
