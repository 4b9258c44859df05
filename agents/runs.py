"""Run directories: what a training leaves behind, and how to read it again. Nothing in them is executed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy

from agents.build import encoder_name
from agents.checkpoint import AGENT, newest_intact
from agents.config import TrainConfig
from agents.config_json import read_config_file
from agents.features import EncoderExtractor, SharedEncoderPolicy
from agents.files import read_tensors, write_bytes
from agents.finite import check_weights
from shaping.goals import make_goals

CONFIG, RESULT, POLICY, BEST, CHECKPOINTS = "config.json", "result.json", "policy.pt", "best.pt", "checkpoints"
RESULT_KINDS: dict[str, Any] = {
    "success_rate": float,
    "mean_steps": (float, type(None)),
    "environment_steps": int,
    "seconds": float,
}


def read_config(directory: Path) -> TrainConfig:
    """Read the configuration stored in a run directory.

    Raises:
        FileNotFoundError: Not a run directory.
        ValueError: The configuration is damaged.
    """
    path = directory / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{directory} is not a run directory: it has no {CONFIG}")
    return read_config_file(path)


def read_result(directory: Path) -> dict[str, Any]:
    """Read the result of a finished run.

    Raises:
        FileNotFoundError: The run has not finished.
        ValueError: The result is damaged.
    """
    path = directory / RESULT
    if not path.is_file():
        raise FileNotFoundError(f"{directory} has no {RESULT}: the run has not finished; continue it with --resume")
    try:
        result = json.loads(path.read_bytes())
        wrong = [name for name, kind in RESULT_KINDS.items() if not isinstance(result[name], kind)]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error
    if wrong:
        raise ValueError(f"{path} is damaged ({wrong[0]} is {result[wrong[0]]!r:.40})")
    return result


def write_result(directory: Path, result: dict[str, Any]) -> None:
    """Write `result.json`, and tell in `result` where the run is and what it holds."""
    write_bytes(directory / RESULT, (json.dumps(result, indent=2) + "\n").encode())
    files = sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))
    result |= {"directory": str(directory), "files": files}


def policy_weights(policy: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Copy the weights that acting needs: the actor with its encoder."""
    return {k: v.detach().cpu().clone() for k, v in policy.state_dict().items() if k.startswith("actor.")}


def load_policy(path: Path, device: str = "cpu") -> tuple[BasePolicy, TrainConfig]:
    """Read the policy of a run; nothing in its files is executed, no simulation is built.

    Args:
        path: Run directory (its final policy, else its best, else its last intact checkpoint), a checkpoint, or a
            `.pt` file in a run directory.
        device: Where the weights go.

    Raises:
        FileNotFoundError: No run directory, or no policy in it.
        ValueError: Damaged weights, or weights of another configuration.
    """
    file = _weights_file(path)
    directory = next((d for d in file.absolute().parents if (d / CONFIG).is_file()), file.parent)
    config = read_config(directory)
    content = read_tensors(file, device)
    shape = make_goals(config.obs).observation_shape
    policy = SharedEncoderPolicy(
        spaces.Box(-np.inf, np.inf, shape, np.float32),
        spaces.Box(-1.0, 1.0, (2,), np.float32),
        lambda _: 0.0,
        net_arch=list(config.learner.net_arch),
        features_extractor_class=EncoderExtractor,
        features_extractor_kwargs={"encoder": encoder_name(config)},
    ).to(device)
    wanted = policy_weights(policy)
    weights: Any = content.get("policy", content)
    weights = weights if isinstance(weights, dict) else {}
    wrong = [name for name, tensor in wanted.items() if getattr(weights.get(name), "shape", None) != tensor.shape]
    if wrong:
        raise ValueError(f"{file}: weights do not fit {directory / CONFIG}: {', '.join(wrong[:3])}")
    policy.load_state_dict({name: weights[name] for name in wanted}, strict=False)
    check_weights(policy)
    policy.set_training_mode(False)
    return policy, config


def _weights_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such run directory or checkpoint")
    for candidate in (path / POLICY, path / BEST, path / AGENT):
        if candidate.is_file():
            return candidate
    checkpoint, damages = newest_intact(path / CHECKPOINTS)
    if checkpoint is not None:
        return checkpoint / AGENT
    nothing = f"{path} holds no policy: neither {POLICY}, {BEST} nor a checkpoint"
    raise FileNotFoundError(next(iter(damages.values()), nothing))
