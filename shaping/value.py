"""Goal-conditioned value estimator Ṽ_g with its goal policy, as one module with a file format."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from shaping.goals import GoalSet, goals_from_dict, goals_to_dict, make_goals
from shaping.tensors import building_at_most, read_tensors, write_tensors

FILE_FORMAT = "shaping.ValueEstimator/1"
LOG_STD_RANGE = (
    -20.0,
    2.0,
)  # as in Stable-Baselines3, so that its SAC actors and this head give the same distribution


class ValueEstimator(nn.Module):
    """Estimate Ṽ_g(s; g) = γ^n, where n is the number of steps of the goal policy to push the puck from s to g.

    The goal is not a separate input, because an observation holds the puck relative to the goal (see `shaping.goals`).
    An encoder is shared by two heads, the value and a tanh-Gaussian goal policy.

    Args:
        observation: Kind of observation: "state" or "pointcloud" of the pushing task, or any name if `goals` are given.
        encoder: Name of a registered encoder (`perception.available_encoders()`).
        encoder_kwargs: Arguments of the encoder, as plain data (numbers, strings, booleans, lists of them).
        hidden: Widths of the hidden layers of both heads.
        action_dim: Size of an action.
        gamma: Discount γ of the value γ^n [1 per step].
        bounds: Range to which the returned value is clipped; defaults to the paper's. A `Potential` also clips to
            [0, 1].
        goal_speed: Largest goal velocity per axis in training [m/s].
        goals: Goal set of the observations, or its plain data; None takes that of the pushing task.

    Raises:
        ValueError: Unknown observation, reversed bounds, γ outside (0, 1], or encoder arguments that cannot be stored.
    """

    def __init__(
        self,
        observation: str,
        encoder: str,
        encoder_kwargs: Mapping[str, Any] | None = None,
        hidden: Sequence[int] = (256, 256),
        action_dim: int = 2,
        gamma: float = 0.99,
        bounds: Sequence[float] = (-100.0, 1.0),
        goal_speed: float = 0.05,
        goals: GoalSet | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        # Imported late, so that shaping with a custom estimator does not need the perception package.
        from perception.registry import make_encoder

        low, high = bounds
        if not low < high:
            raise ValueError(f"bounds are {tuple(bounds)}; give (low, high) with low < high")
        if not 0.0 < gamma <= 1.0:
            raise ValueError(f"gamma is {gamma}; give a discount in (0, 1]")
        if goals is None:
            goals = make_goals(observation, goal_speed)
            own = {}
        else:
            goals = goals if isinstance(goals, GoalSet) else goals_from_dict(goals)
            own = {"goals": goals_to_dict(goals)}
        self.goals: GoalSet = goals
        self.config: dict[str, Any] = {
            "observation": observation,
            "encoder": encoder,
            "encoder_kwargs": dict(encoder_kwargs or {}),
            "hidden": list(hidden),
            "action_dim": action_dim,
            "gamma": gamma,
            "bounds": [low, high],
            "goal_speed": goal_speed,
            **own,
        }
        try:
            # Converted to JSON and back, so that the configuration is the same after saving and loading.
            self.config = json.loads(json.dumps(self.config))
        except TypeError as error:
            raise ValueError(f"estimator configuration holds more than plain data ({error}): {self.config}") from None
        self.observation = observation
        self.in_shape = self.goals.observation_shape
        self.action_dim = action_dim
        self.gamma = gamma
        self.bounds = (low, high)
        self.goal_speed = goal_speed
        self.encoder = make_encoder(encoder, in_shape=self.in_shape, **self.config["encoder_kwargs"])
        features = int(self.encoder.out_features)  # type: ignore[arg-type]
        self.value = _mlp(features, hidden, 1)
        self.policy = _mlp(features, hidden, 2 * action_dim)

    def forward(self, observation: Float[Tensor, "batch ..."]) -> Float[Tensor, " batch"]:
        """Return Ṽ_g clipped to `bounds`; its gradient is zero where it is clipped (use `raw_value` for regression)."""
        return self.raw_value(observation).clamp(*self.bounds)

    def raw_value(self, observation: Float[Tensor, "batch ..."]) -> Float[Tensor, " batch"]:
        """Return the value head's output before clipping, for regression."""
        return self.value(self.encoder(observation)).squeeze(-1)

    def action_distribution(
        self, observation: Float[Tensor, "batch ..."]
    ) -> tuple[Float[Tensor, "batch action"], Float[Tensor, "batch action"]]:
        """Return mean and log standard deviation of the goal policy before the tanh."""
        mean, log_std = self.policy(self.encoder(observation)).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE)

    def act(self, observation: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch action"]:
        """Return the deterministic goal action tanh(mean), in [−1, 1]."""
        mean, _ = self.action_distribution(observation)
        return mean.tanh()

    def fingerprint(self) -> str:
        """Return the SHA-256 (hex) of configuration and weights; it does not depend on the device."""
        digest = hashlib.sha256(json.dumps(self.config, sort_keys=True).encode())
        for name, tensor in sorted(self.state_dict().items()):
            data = tensor.detach().cpu().contiguous()
            digest.update(f"{name} {data.dtype} {tuple(data.shape)}".encode())
            digest.update(data.numpy().tobytes())
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write configuration, weights and fingerprint to `path` atomically."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "format": FILE_FORMAT,
            "config": self.config,
            "weights": {name: tensor.detach().cpu() for name, tensor in self.state_dict().items()},
            "fingerprint": self.fingerprint(),
        }
        write_tensors(path, content)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        device: str | torch.device = "cpu",
        *,
        observation: str | None = None,
    ) -> ValueEstimator:
        """Read an estimator written by `save`, without executing anything in the file.

        Args:
            path: File of the estimator.
            device: Device of the weights.
            observation: Required kind of observation; None accepts any.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is truncated, altered, not an estimator, made for another observation, or names an
                unknown encoder.
        """
        content = _read(Path(path), device)
        config = content["config"]
        if observation is not None and config.get("observation") != observation:
            made_for = config.get("observation")
            raise ValueError(f"{path}: made for {made_for!r} observations, not {observation!r}; choose another one")
        try:
            with building_at_most(Path(path).stat().st_size):
                estimator = cls(**config)
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
            raise ValueError(f"{path}: its configuration does not make an estimator ({_one_line(error)})") from error
        try:
            estimator.load_state_dict(content["weights"])
        except RuntimeError:
            raise ValueError(f"{path}: its weights do not fit its configuration; pre-train or copy it again") from None
        if estimator.fingerprint() != content["fingerprint"]:
            raise ValueError(f"{path}: content does not match its fingerprint; copy the file again")
        return estimator.to(device).eval()


def _mlp(in_features: int, hidden: Sequence[int], out_features: int) -> nn.Sequential:
    """Return linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(in_features, width), nn.ReLU()]
        in_features = width
    return nn.Sequential(*layers, nn.Linear(in_features, out_features))


def _read(path: Path, device: str | torch.device) -> dict[str, Any]:
    """Return the content of an estimator file, after checking its top level."""
    try:
        content: Any = read_tensors(path, device)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; write one with python -m agents.pretrain") from None
    expected = {"format": str, "config": dict, "weights": dict, "fingerprint": str}
    if not all(isinstance(content.get(key), kind) for key, kind in expected.items()):
        raise ValueError(f"{path}: not a value estimator; write one with python -m agents.pretrain")
    if content["format"] != FILE_FORMAT:
        raise ValueError(f"{path}: format {content['format']!r}; this version reads {FILE_FORMAT!r}")
    return content


def _one_line(error: Exception) -> str:
    """Return an error's message without line breaks."""
    return " ".join(str(error.args[0] if error.args else error).split())
