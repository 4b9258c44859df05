"""Linear probe: how much of the state a ridge regression recovers from an encoder's features."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import nn

from perception.registry import make_encoder
from shaping.value import ValueEstimator

RIDGE = 1e-2  # weight λ of the squared coefficients, against features of variance 1
BATCH = 1024  # clouds that an encoder takes at once, which bounds its memory


def load_encoder(estimator: Path, encoder: str | None, in_shape: tuple[int, ...], seed: int) -> nn.Module:
    """Return the encoder of an estimator or, if one is named, a registered encoder with random weights.

    Args:
        estimator: File of the estimator, of clouds.
        encoder: Name of a registered encoder; None takes that of the estimator.
        in_shape: Shape of an observation.
        seed: Seed of random weights.

    Raises:
        FileNotFoundError: There is no such estimator.
        ValueError: The file is no estimator of clouds, or the encoder is unknown.
    """
    if encoder is None:
        loaded = ValueEstimator.load(estimator, observation="pointcloud")
        if loaded.in_shape != in_shape:
            raise ValueError(
                f"{estimator}: made for clouds of shape {loaded.in_shape}, not {in_shape}; choose another one"
            )
        return loaded.encoder
    torch.manual_seed(seed)
    return make_encoder(encoder, in_shape=in_shape).eval()


def features(encoder: nn.Module, clouds: Shaped[np.ndarray, "frames points 4"]) -> Float[np.ndarray, "frames features"]:
    """Return the features of clouds, shape (frames, features)."""
    with torch.no_grad():
        parts = [encoder(part).numpy() for part in torch.from_numpy(clouds).split(BATCH)]
    return np.concatenate(parts).astype(float)


def recovered(
    inputs: Float[np.ndarray, "frames features"],
    targets: Shaped[np.ndarray, "frames targets"],
    episode: Int[np.ndarray, " frames"],
) -> Float[np.ndarray, " targets"]:
    """Fit targets to every other episode and return R² per target on the episodes that are left out.

    W = argmin ⟨‖Y − X W‖²⟩ + λ‖W‖² with standardised features X and centred targets Y, and
    R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)², which is 1 for a perfect fit and 0 for the mean. It is at most 1 and has no lower
    bound.

    Args:
        inputs: Features, shape (frames, features).
        targets: Numbers to recover, shape (frames, targets).
        episode: Number of the episode, shape (frames,); the even ones are fitted, the odd ones left out.

    Returns:
        R², shape (targets,); NaN for a target that does not vary.
    """
    fitted = episode % 2 == 0
    x, y = inputs - inputs[fitted].mean(axis=0), targets - targets[fitted].mean(axis=0, dtype=float)
    x = x / np.maximum(x[fitted].std(axis=0), 1e-9)
    gram = x[fitted].T @ x[fitted] / fitted.sum()
    weights = np.linalg.solve(gram + RIDGE * np.eye(len(gram)), x[fitted].T @ y[fitted] / fitted.sum())
    left, error = y[~fitted], y[~fitted] - x[~fitted] @ weights
    spread = ((left - left.mean(axis=0)) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0, 1 - (error**2).sum(axis=0) / spread, np.nan)
