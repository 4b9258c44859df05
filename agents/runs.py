"""Run directories: what a training leaves behind, and how to read it again. Nothing in them is executed."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy

from agents.build import encoder_name
from agents.checkpoint import AGENT, list_checkpoints, newest_intact
from agents.config import TrainConfig
from agents.config_json import is_of_earlier_version, read_config_file
from agents.features import EncoderExtractor, SharedEncoderPolicy
from agents.files import read_tensors, write_text
from agents.finite import check_weights
from envs.files import read_regular
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
        wrong = [name for name, kind in RESULT_KINDS.items() if not isinstance(result[name], kind)]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error
    if wrong:
        raise ValueError(f"{path} is damaged ({wrong[0]} is {result[wrong[0]]!r:.40})")
    return result


def write_result(directory: Path, result: dict[str, Any]) -> None:
    """Write `result.json`, and tell in `result` where the run is and what it holds."""
    write_text(directory / RESULT, json.dumps(result, indent=2) + "\n")
    files = sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))
    result |= {"directory": str(directory), "files": files}


def policy_weights(actor: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Copy the weights that acting needs, those of an actor with its encoder, by their names in a policy."""
    return {f"actor.{k}": v.detach().cpu().clone() for k, v in actor.state_dict().items()}


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
    directory = next((d for d in file.absolute().parents if os.path.lexists(d / CONFIG)), file.parent)
    config = read_config(directory)
    content = read_tensors(file, device)
    weights: Any = content.get("policy", content)
    weights = weights if isinstance(weights, dict) else {}
    if isinstance(average := content.get("average"), dict):  # of a checkpoint
        weights |= {f"actor.{name}": weight for name, weight in average.items()}
    _check_layers(weights, config, file, directory)
    shape = make_goals(config.obs).observation_shape
    policy = SharedEncoderPolicy(
        spaces.Box(-np.inf, np.inf, shape, np.float32),
        spaces.Box(-1.0, 1.0, (2,), np.float32),
        lambda _: 0.0,
        net_arch=list(config.learner.net_arch),
        features_extractor_class=EncoderExtractor,
        features_extractor_kwargs={"encoder": encoder_name(config)},
    ).to(device)
    wanted = policy_weights(policy.actor)
    wrong = [name for name, tensor in wanted.items() if getattr(weights.get(name), "shape", None) != tensor.shape]
    if wrong:
        raise ValueError(f"{file}: weights do not fit {directory / CONFIG}: {', '.join(wrong[:3])}")
    policy.load_state_dict({name: weights[name] for name in wanted}, strict=False)
    check_weights(policy)
    policy.set_training_mode(False)
    return policy, config


def check_resumable(directory: Path, config: TrainConfig) -> None:
    """Check, before anything is built or written, that the run in `directory` can go on.

    One that was killed before its first checkpoint can: it begins anew.

    Raises:
        ValueError: An earlier version made it, its checkpoints are elsewhere or gone, or their networks are not those
            of the configuration.
        OSError: Its checkpoints cannot be listed or read.
    """
    if is_of_earlier_version(directory / CONFIG):
        raise ValueError(
            f"{directory} was trained by an earlier version, which updated after every step and cannot be continued "
            "by this one; evaluate it, or train anew with another --out"
        )
    checkpoints = directory / CHECKPOINTS
    if checkpoints.is_symlink():
        raise ValueError(f"{checkpoints} is a symbolic link; move the checkpoints into the run directory")
    found = list_checkpoints(checkpoints)
    for path in found:
        try:
            weights = read_tensors(path / AGENT).get("policy")
        except (ValueError, FileNotFoundError, NotADirectoryError):  # damaged: one before it may be intact
            continue
        _check_layers(weights if isinstance(weights, dict) else {}, config, path / AGENT, directory)
    if found:
        return
    finished = [name for name in (RESULT, POLICY) if os.path.lexists(directory / name)]
    if finished:
        raise ValueError(
            f"{directory} has {' and '.join(finished)}, but no checkpoint to continue from: put its "
            f"{CHECKPOINTS} back, or train anew with another --out"
        )
    others = [path.name for path in checkpoints.glob("*") if not path.name.startswith(".")]
    if others:
        raise ValueError(f"{checkpoints} holds {min(others)}, but no checkpoint; put one back, or move all of it away")


def _check_layers(weights: dict[str, Any], config: TrainConfig, file: Path, directory: Path) -> None:
    """Compare the configured layers with those of a file before they are built: a number can name a huge one."""
    wanted = config.learner.net_arch
    places = range(0, 2 * len(wanted) + 1, 2)  # between them activations; behind the last one nothing
    layers = [weights.get(f"actor.latent_pi.{i}.weight") for i in places]
    shapes = [tuple(getattr(layer, "shape", ())) for layer in layers]
    chained = all(shape[1:] == (width,) for shape, width in zip(shapes[1:-1], wanted, strict=False))
    if [shape[0] if shape else 0 for shape in shapes] != [*wanted, 0] or not chained:
        raise ValueError(
            f"{directory / CONFIG}: learner.net_arch is {list(wanted)}, but weights do not fit in {file}; "
            "put back the configuration of this run"
        )
    # One stored number can be named a large layer.
    if sum(layer.nbytes for layer in layers if layer is not None) > file.stat().st_size:
        raise ValueError(f"{file}: weights do not fit {directory / CONFIG}: its layers are larger than the file")


def _weights_file(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such run directory or checkpoint")
    if not path.is_dir():
        return path
    for candidate in (path / POLICY, path / BEST, path / AGENT):
        if os.path.lexists(candidate):
            return candidate
    checkpoint, damages = newest_intact(path / CHECKPOINTS)
    if checkpoint is not None:
        return checkpoint / AGENT
    nothing = f"{path} holds no policy: neither {POLICY}, {BEST} nor a checkpoint"
    raise FileNotFoundError(next(iter(damages.values()), nothing))
