"""Memory of a training: what the replay buffer will take once it is full, and whether the machine has it."""

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
from agents.methods.encoder import stored_features
from agents.tasks import get_task

# What the first updates of batch 512 add to a process whose environments and agent are made, as measured [bytes].
LEARNING = {"state": 20e6, "pointcloud": 60e6}
ENVIRONMENT = 55e6  # of each, as measured [bytes]
# What a forked process comes to have for itself, as measured over minutes: the collecting and the evaluating one.
BESIDE = 30e6
HINDSIGHT = 10 * 8  # of a transition in a `HindsightReplayBuffer`: two goals of 4 numbers and two counts [bytes]


def transition_bytes(observation_shape: tuple[int, ...], action_dim: int, features_dim: int = 0) -> int:
    """Bytes of one transition in a `ShapedReplayBuffer`.

    Observation, action; reward, terminal and time-limit flag; Φ(s) and Φ(s′); features of the observation where they
    are stored; and where to find what follows each of observation and features: 4 bytes a number, and 1 each for the
    flag of success and those of visibility. What follows the last row of an episode is not counted, a few in a hundred
    rows.

    Args:
        observation_shape: Of one observation.
        action_dim: Numbers of one action.
        features_dim: Features stored of each observation, 0 for none.
    """
    numbers = math.prod(observation_shape) + 1 + action_dim + 3 + 2 + (features_dim and features_dim + 1)
    return numbers * np.dtype(np.float32).itemsize + 2


def buffer_rows(config: TrainConfig) -> int:
    """Transitions in the replay buffer: no more than there are steps."""
    return min(config.learner.buffer_size, config.environment_steps)


def buffer_bytes(config: TrainConfig) -> int:
    """Bytes of the replay buffer when it is full."""
    return buffer_rows(config) * _row_bytes(config, stored_features(config))


def _row_bytes(config: Any, features_dim: int = 0) -> int:
    task = get_task(config.task)
    return transition_bytes(task.view(config.obs).space.shape, task.action_space.shape[0], features_dim)


def network_bytes(config: TrainConfig) -> int:
    """Bytes of what lies between the hidden layers while they learn.

    Of actor and two critics the weights, their gradients and Adam's two moments, of the critics' targets the weights.
    """
    weights = sum(a * b for a, b in pairwise(config.learner.net_arch))
    return (3 * 4 + 2) * weights * np.dtype(np.float32).itemsize


def estimate_memory(config: TrainConfig) -> int:
    """Bytes that the training will have resident when its replay buffer is full, all its processes together.

    To be asked when environments and agent are made and nothing is learned, for a buffer's memory is taken as it fills.
    Pages that the processes share count once.
    """
    resident = psutil.Process().memory_info().rss + _update_bytes(config)
    return resident + beside_bytes(config) + buffer_bytes(config)


def beside_bytes(config: TrainConfig) -> int:
    """Bytes that the collecting and the evaluating process take beside this one."""
    return int(2 * BESIDE) if works_beside(config.parallel) else 0


def available_memory() -> int:
    """Bytes that the machine, or the container around this process, still has."""
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
    """Check that the machine has the memory of environments, networks, updates and replay buffer.

    Raises:
        ValueError: It does not; names the setting to lower.
    """
    learner = config.learner
    networks, layers = network_bytes(config), ", ".join(map(str, learner.net_arch))
    _check(f"learning with layers of {layers}", networks, "--learner.net-arch")
    _check_update(config)
    environments = int(config.num_envs * ENVIRONMENT) + beside_bytes(config)
    _check(f"collecting in {config.num_envs} environments", environments, "--num-envs")
    _check_buffer(buffer_rows(config), _row_bytes(config, stored_features(config)), "--learner.buffer-size")


def check_pretraining_memory(config: Any) -> None:
    """Check that the machine has the memory of a pre-training, whose `HindsightReplayBuffer` holds every step.

    Raises:
        ValueError: It does not; names the setting to lower.
    """
    _check_update(config)
    _check_buffer(config.steps, _row_bytes(config) + HINDSIGHT, "--steps")


def _check_update(config: Any) -> None:
    what = f"an update with {config.learner.batch_size} transitions"
    _check(what, _update_bytes(config), "--learner.batch-size")


def _update_bytes(config: Any) -> int:
    return int(LEARNING[config.obs] * config.learner.batch_size / 512)


def _check_buffer(transitions: int, each: int, flag: str) -> None:
    fitting = f"{flag} to at most {available_memory() // each}"
    _check(f"a replay buffer of {transitions} transitions", transitions * each, fitting)


def _check(what: str, needed: int, flag: str) -> None:
    available = available_memory()
    if needed > available:
        raise ValueError(f"{what} needs {needed / 1e9:.2f} GB, and {available / 1e9:.2f} GB are free; lower {flag}")


def describe_memory(config: TrainConfig) -> str:
    """Describe the memory that a training will take, in a line; to be asked when `estimate_memory` is."""
    buffer, beside, total = buffer_bytes(config), beside_bytes(config), estimate_memory(config)
    others = f", {beside / 1e9:.2f} GB of it in the collecting and the evaluating process" if beside else ""
    return (
        f"memory: {buffer / 1e9:.2f} GB for {buffer_rows(config)} transitions, {total / 1e9:.2f} GB in all once they "
        f"are there{others}"
    )
