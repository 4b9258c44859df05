"""Run directories: what a training leaves behind, and how to read it again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy

from agents.build import encoder_name
from agents.checkpoint import list_checkpoints
from agents.config import TrainConfig, from_json
from agents.features import EncoderExtractor, SharedEncoderPolicy
from shaping.goals import make_goals

CONFIG, RESULT, POLICY, BEST, CHECKPOINTS = "config.json", "result.json", "policy.pt", "best.pt", "checkpoints"


def read_config(directory: Path) -> TrainConfig:
    """Read the configuration stored in a run directory.

    Raises:
        FileNotFoundError: Not a run directory.
        ValueError: The configuration is damaged.
    """
    path = directory / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{directory} is not a run directory: it has no {CONFIG}")
    try:
        return from_json(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_result(directory: Path) -> dict[str, Any]:
    """Read the result of a finished run.

    Raises:
        FileNotFoundError: The run has not finished.
    """
    path = directory / RESULT
    if not path.is_file():
        raise FileNotFoundError(f"{directory} has no {RESULT}: the run has not finished; continue it with --resume")
    return json.loads(path.read_text())


def write_result(directory: Path, result: dict[str, Any]) -> None:
    """Write `result.json`, and tell in `result` where the run is and what it holds."""
    (directory / RESULT).write_text(json.dumps(result, indent=2) + "\n")
    result |= {"directory": str(directory), "files": sorted(p.name for p in directory.iterdir())}


def load_policy(path: Path, device: str = "cpu") -> tuple[BasePolicy, TrainConfig]:
    """Read the policy of a run; nothing in its files is executed, no simulation is built.

    Args:
        path: Run directory (its final policy, else its best, else its last checkpoint), a checkpoint, or a `.pt` file
            in a run directory.
        device: Where the weights go.

    Raises:
        FileNotFoundError: No run directory, or no policy in it.
        ValueError: Damaged weights, or weights of another configuration.
    """
    weights = _weights_file(path)
    directory = next((d for d in weights.parents if (d / CONFIG).is_file()), weights.parent)
    config = read_config(directory)
    try:
        state = torch.load(weights, map_location=device, weights_only=True)
    except Exception as error:  # a damaged file can make the unpickler raise almost anything
        raise ValueError(f"{weights}: not a policy, or a damaged one ({type(error).__name__})") from error
    shape = make_goals(config.obs).observation_shape
    policy = SharedEncoderPolicy(
        spaces.Box(-np.inf, np.inf, shape, np.float32),
        spaces.Box(-1.0, 1.0, (2,), np.float32),
        lambda _: 0.0,
        net_arch=list(config.learner.net_arch),
        features_extractor_class=EncoderExtractor,
        features_extractor_kwargs={"encoder": encoder_name(config)},
    ).to(device)
    state = {k: v for k, v in state.get("policy", state).items() if k.startswith("actor.")}
    missing, unexpected = policy.load_state_dict(state, strict=False)
    wrong = [k for k in missing if k.startswith("actor.")] + unexpected
    if wrong or not state:
        raise ValueError(f"{weights}: weights do not fit {directory / CONFIG}: {', '.join(wrong[:3]) or 'empty'}")
    policy.set_training_mode(False)
    return policy, config


def _weights_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such run directory or checkpoint")
    candidates = [path / POLICY, path / BEST, path / "agent.pt"]
    candidates += [c / "agent.pt" for c in reversed(list_checkpoints(path / CHECKPOINTS))]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"{path} holds no policy: neither {POLICY}, {BEST} nor a checkpoint")
