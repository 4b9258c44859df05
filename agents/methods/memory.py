"""Memory of a training: estimates for the full replay buffer, and checks against the available memory."""

import contextlib
import ctypes
import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from agents.collecting.worker import works_beside
from agents.config import TrainConfig
from agents.methods.encoder import encoder_info, stored_features
from agents.tasks import get_task

# Measured memory that the first gradient steps (batch size 512) add to a process with environments and agent [bytes].
LEARNING, LEARNING_CLOUDS = 20e6, 60e6
LEARNING_AUTOGRAD = 200e6  # with the encoders of clouds and images that are trained by autograd, the largest of them
ENVIRONMENT = 55e6  # measured, per environment [bytes]
SURFACE = 165e6  # measured, per environment whose observations are drawn by OpenGL: buffers, meshes, textures [bytes]
# Measured unshared memory of a worker process (collecting or evaluating) after some minutes [bytes].
BESIDE = 30e6
# Additional memory per transition of a `HindsightReplayBuffer`: two goals of 4 numbers and two counts [bytes].
HINDSIGHT = 10 * 8


def transition_bytes(observation_shape: tuple[int, ...], action_dim: int, features_dim: int = 0) -> int:
    """Return the size of one transition in a `ShapedReplayBuffer` [bytes].

    A transition holds, at 4 bytes per number: observation, action, reward, terminal flag, time-limit flag, Φ(s), Φ(s′),
    the features of the observation if they are stored, and one index each for the next observation and the next
    features. The success flag and the visibility flags take 1 byte each. The separately stored next observations of
    the last rows of episodes, a few per hundred rows, are not counted.

    Args:
        observation_shape: Shape of one observation.
        action_dim: Dimension of the action.
        features_dim: Number of features stored per observation, 0 for none.
    """
    numbers = math.prod(observation_shape) + 1 + action_dim + 3 + 2 + (features_dim and features_dim + 1)
    return numbers * np.dtype(np.float32).itemsize + 2


def buffer_rows(config: TrainConfig) -> int:
    """Return the capacity of the replay buffer in transitions: at most the number of environment steps."""
    return min(config.learner.buffer_size, config.environment_steps)


def buffer_bytes(config: TrainConfig) -> int:
    """Return the size of the full replay buffer [bytes]."""
    return buffer_rows(config) * _row_bytes(config, stored_features(config))


def _row_bytes(config: Any, features_dim: int = 0) -> int:
    task = get_task(config.task)
    return transition_bytes(task.view(config.obs).space.shape, task.action_space.shape[0], features_dim)


def network_bytes(config: TrainConfig) -> int:
    """Return the memory of the weights between the hidden layers during training [bytes].

    Actor and two critics hold weights, gradients and Adam's two moments; the two target networks hold weights only.
    """
    weights = sum(a * b for a, b in pairwise(config.learner.net_arch))
    return (3 * 4 + 2) * weights * np.dtype(np.float32).itemsize


def estimate_memory(config: TrainConfig) -> int:
    """Return the resident memory of all processes of the training once the replay buffer is full [bytes].

    Call this after environments and agent are made and before the first environment step, because the memory of the
    replay buffer is allocated as it fills. Pages shared by the processes count once.
    """
    resident = psutil.Process().memory_info().rss + _update_bytes(config)
    evaluation = int(SURFACE) if _is_drawn(config) else 0  # which has not drawn yet
    return resident + evaluation + beside_bytes(config) + buffer_bytes(config)


def beside_bytes(config: TrainConfig) -> int:
    """Return the memory of the collecting and the evaluating worker process [bytes]."""
    return int(2 * BESIDE) if works_beside(config.parallel, _is_drawn(config)) else 0


def _is_drawn(config: TrainConfig) -> bool:
    return get_task(config.task).view(config.obs).opengl


def available_memory() -> int:
    """Return the available memory of the machine or of the container of this process [bytes]."""
    free = int(psutil.virtual_memory().available)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return min(free, int(limit.read_text()) - int(used.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return free


def release_memory() -> None:
    """Return to the system what is free after the environments are built but still held by the allocator (glibc)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def check_memory(config: TrainConfig) -> None:
    """Check that the memory suffices for environments, networks, gradient steps and replay buffer.

    Raises:
        ValueError: The memory does not suffice; the message names the setting to lower.
    """
    learner = config.learner
    networks, layers = network_bytes(config), ", ".join(map(str, learner.net_arch))
    _check(f"learning with layers of {layers}", networks, "--learner.net-arch")
    _check_update(config)
    drawn = (config.num_envs + 1) * SURFACE if _is_drawn(config) else 0.0
    environments = int(config.num_envs * ENVIRONMENT + drawn) + beside_bytes(config)
    _check(f"collecting in {config.num_envs} environments", environments, "--num-envs")
    _check_buffer(buffer_rows(config), _row_bytes(config, stored_features(config)), "--learner.buffer-size")


def check_pretraining_memory(config: Any) -> None:
    """Check that the memory suffices for a pre-training, whose `HindsightReplayBuffer` holds every transition.

    Raises:
        ValueError: The memory does not suffice; the message names the setting to lower.
    """
    _check_update(config)
    _check_buffer(config.steps, _row_bytes(config) + HINDSIGHT, "--steps")


def _check_update(config: Any) -> None:
    what = f"an update with {config.learner.batch_size} transitions"
    _check(what, _update_bytes(config), "--learner.batch-size")


def _update_bytes(config: Any) -> int:
    frozen = getattr(config.learner, "encoder_training", "") == "frozen"
    if len(get_task(config.task).view(config.obs).space.shape) == 1:
        largest = LEARNING
    else:
        largest = LEARNING_CLOUDS if frozen or encoder_info(config).name == "pointnet" else LEARNING_AUTOGRAD
    return int(largest * config.learner.batch_size / 512)


def _check_buffer(transitions: int, each: int, flag: str) -> None:
    fitting = f"{flag} to at most {available_memory() // each}"
    _check(f"a replay buffer of {transitions} transitions", transitions * each, fitting)


def _check(what: str, needed: int, flag: str) -> None:
    available = available_memory()
    if needed > available:
        raise ValueError(f"{what} needs {needed / 1e9:.2f} GB, and {available / 1e9:.2f} GB are free; lower {flag}")


def describe_memory(config: TrainConfig) -> str:
    """Describe the memory of a training in one line; call this at the same point as `estimate_memory`."""
    buffer, beside, total = buffer_bytes(config), beside_bytes(config), estimate_memory(config)
    others = f", {_size(beside)} of it in the collecting and the evaluating process" if beside else ""
    return (
        f"memory: {_size(buffer)} for {buffer_rows(config)} transitions, {_size(total)} in all once they are "
        f"there{others}"
    )


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e7 else f"{count / 1e6:.1f} MB"
