"""Loading of the policy of a run as plain data."""

import os
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.policies import BasePolicy

from agents.config import TrainConfig
from agents.finite import check_weights
from agents.methods.encoder import encoder_info
from agents.runs.checkpoint import AGENT, newest_intact
from agents.runs.directory import BEST, CHECKPOINTS, CONFIG, POLICY, read_config
from agents.sac.policy import SharedEncoderPolicy, policy_settings
from agents.tasks import get_task
from shaping.tensors import read_tensors


def policy_weights(actor: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of the weights of an actor and its encoder by their names in a policy."""
    return {f"actor.{k}": v.detach().cpu().clone() for k, v in actor.state_dict().items()}


def load_policy(path: Path, device: str = "cpu") -> tuple[BasePolicy, TrainConfig]:
    """Load the policy of a run without executing code from its files and without building a simulation.

    Args:
        path: Run directory (its final policy, else its best policy, else its last intact checkpoint), checkpoint, or
            `.pt` file in a run directory.
        device: Device of the weights.

    Raises:
        FileNotFoundError: The path is not a run directory, or there is no policy in it.
        ValueError: The weights are damaged or belong to another configuration.
    """
    file = _weights_file(path)
    directory = next((d for d in file.absolute().parents if os.path.lexists(d / CONFIG)), file.parent)
    config = read_config(directory)
    content = read_tensors(file, device)
    weights: Any = content.get("policy", content)
    weights = weights if isinstance(weights, dict) else {}
    if isinstance(average := content.get("average"), dict):  # checkpoints only
        weights |= {f"actor.{name}": weight for name, weight in average.items()}
    check_layers(weights, config, file, directory)
    policy = _make_policy(config).to(device)
    wanted = policy_weights(policy.actor)
    wrong = [name for name, tensor in wanted.items() if getattr(weights.get(name), "shape", None) != tensor.shape]
    if wrong:
        raise ValueError(f"{file}: weights do not fit {directory / CONFIG}: {', '.join(wrong[:3])}")
    policy.load_state_dict({name: weights[name] for name in wanted}, strict=False)
    check_weights(policy)
    policy.set_training_mode(False)
    return policy, config


def load_critic(run: Path) -> torch.nn.Module:
    """Load the critics of the last intact checkpoint of a run: (observations, actions) → one value of each.

    Raises:
        FileNotFoundError: There is no checkpoint, or its method has no critic.
        ValueError: The weights are damaged or belong to another configuration.
    """
    config = read_config(run)
    checkpoint, damages = newest_intact(run / CHECKPOINTS)
    if checkpoint is None:
        raise FileNotFoundError(next(iter(damages.values()), f"{run} holds no checkpoint, and only these hold critics"))
    weights: Any = read_tensors(checkpoint / AGENT, "cpu").get("policy")
    check_layers(weights, config, checkpoint / AGENT, run)
    policy = _make_policy(config)
    try:
        policy.load_state_dict(weights)
    except RuntimeError:
        raise ValueError(f"{checkpoint / AGENT}: weights do not fit {run / CONFIG}") from None
    policy.set_training_mode(False)
    return policy.critic


def _make_policy(config: TrainConfig) -> SharedEncoderPolicy:
    task = get_task(config.task)
    return SharedEncoderPolicy(
        task.view(config.obs).space,
        task.action_space,
        lambda _: 0.0,
        **policy_settings(encoder_info(config).name, config.learner.net_arch),
    )


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


def check_layers(weights: dict[str, Any], config: TrainConfig, file: Path, directory: Path) -> None:
    """Check the configured layers against the weights in a file, before layers of an arbitrary size are allocated.

    Raises:
        ValueError: The layers have other shapes, or are larger than the file.
    """
    wanted = config.learner.net_arch
    places = range(0, 2 * len(wanted) + 1, 2)  # activations lie between; no layer follows the last
    layers = [weights.get(f"actor.latent_pi.{i}.weight") for i in places]
    shapes = [tuple(getattr(layer, "shape", ())) for layer in layers]
    chained = all(shape[1:] == (width,) for shape, width in zip(shapes[1:-1], wanted, strict=False))
    if [shape[0] if shape else 0 for shape in shapes] != [*wanted, 0] or not chained:
        raise ValueError(
            f"{directory / CONFIG}: learner.net_arch is {list(wanted)}, but weights do not fit in {file}; "
            "put back the configuration of this run"
        )
    # A stored tensor of stride 0 can have a large shape and hold a single number.
    if sum(layer.nbytes for layer in layers if layer is not None) > file.stat().st_size:
        raise ValueError(f"{file}: weights do not fit {directory / CONFIG}: its layers are larger than the file")
