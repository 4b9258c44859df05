"""Checkpoints of a training: everything that the next step depends on, as data, written atomically.

A checkpoint is a directory `step-N` with `agent.pt` (weights, optimisers, counters, random states, the environment's
state; read with ``weights_only``) and `buffer.npz` (the filled rows of the replay buffer).
"""

import os
import shutil
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.sac import SAC

KEPT = 2
COUNTERS = ("num_timesteps", "_n_updates", "_episode_num")


def save_checkpoint(model: SAC, directory: Path) -> Path:
    """Write a checkpoint of `model` and its environment below `directory`, keep the last two, return its path."""
    target = directory / f"step-{model.num_timesteps:09d}"
    partial = directory / f".{target.name}-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    torch.save(_state(model), partial / "agent.pt")
    np.savez(partial / "buffer.npz", **model.replay_buffer.filled())  # type: ignore[union-attr]
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    for old in list_checkpoints(directory)[:-KEPT]:
        shutil.rmtree(old)
    return target


def list_checkpoints(directory: Path) -> list[Path]:
    """Complete checkpoints below `directory`, oldest first."""
    return sorted(directory.glob("step-*"))


def load_checkpoint(model: SAC, path: Path) -> None:
    """Put `model`, built with the same configuration, and its environment where `save_checkpoint` found them.

    Raises:
        ValueError: The checkpoint is damaged or belongs to another configuration.
    """
    try:
        state = torch.load(path / "agent.pt", map_location=model.device, weights_only=True)
        with np.load(path / "buffer.npz", allow_pickle=False) as rows:
            model.replay_buffer.fill(dict(rows), state["position"])  # type: ignore[union-attr]
        _restore(model, state)
    except Exception as error:  # a damaged file can make the readers raise almost anything
        raise ValueError(
            f"{path}: damaged, or made with another configuration ({type(error).__name__}: {error})"
        ) from error


def _optimizers(model: SAC) -> dict[str, torch.optim.Optimizer]:
    named = {"actor": model.actor.optimizer, "critic": model.critic.optimizer}
    return named if model.ent_coef_optimizer is None else named | {"temperature": model.ent_coef_optimizer}


def _state(model: SAC) -> dict[str, Any]:
    monitor = model.env.envs[0]  # type: ignore[union-attr]
    return {
        "policy": model.policy.state_dict(),
        "optimizers": {name: optimizer.state_dict() for name, optimizer in _optimizers(model).items()},
        "log_ent_coef": getattr(model, "log_ent_coef", None),
        "counters": {name: getattr(model, name) for name in COUNTERS},
        "position": model.replay_buffer.pos,  # type: ignore[union-attr]
        "last_obs": torch.from_numpy(np.array(model._last_obs)),
        "last_episode_starts": torch.from_numpy(np.array(model._last_episode_starts)),
        "episodes": [{k: float(v) for k, v in e.items() if k in "rlt"} for e in model.ep_info_buffer],  # type: ignore[union-attr]
        "monitor": {"rewards": [float(r) for r in monitor.rewards]},
        "environment": [w.get_state() for w in _stateful(monitor)],
        "guide": None if model.guide is None else model.guide.get_state(),
        "torch_rng": torch.get_rng_state(),
        "buffer_rng": [b.rng.bit_generator.state for b in _buffers(model)],
        "action_space_rng": model.action_space.np_random.bit_generator.state,
    }


def _restore(model: SAC, state: dict[str, Any]) -> None:
    model.policy.load_state_dict(state["policy"])
    for name, optimizer in _optimizers(model).items():
        optimizer.load_state_dict(state["optimizers"][name])
    if state["log_ent_coef"] is not None:
        model.log_ent_coef.data.copy_(  # type: ignore[union-attr]
            state["log_ent_coef"]
        )
    for name, value in state["counters"].items():
        setattr(model, name, value)
    model._last_obs = state["last_obs"].cpu().numpy()
    model._last_episode_starts = state["last_episode_starts"].cpu().numpy()
    model.ep_info_buffer = deque(state["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(maxlen=model._stats_window_size)
    monitor = model.env.envs[0]  # type: ignore[union-attr]
    monitor.reset()  # wrappers insist on it; the state overwrites what it drew
    monitor.rewards, monitor.needs_reset = list(state["monitor"]["rewards"]), False
    for wrapper, saved in zip(_stateful(monitor), state["environment"], strict=True):
        wrapper.set_state(saved)
    if model.guide is not None:
        model.guide.set_state(state["guide"])
    torch.set_rng_state(state["torch_rng"].cpu())
    for buffer, saved in zip(_buffers(model), state["buffer_rng"], strict=True):
        buffer.rng.bit_generator.state = saved
    model.action_space.np_random.bit_generator.state = state["action_space_rng"]


def _buffers(model: SAC) -> list[Any]:
    buffer: Any = model.replay_buffer
    return [b for b in (buffer, buffer.demonstrations) if b is not None]


def _stateful(env: Any) -> list[Any]:
    """The wrappers of `env`, outermost first, that carry state from step to step."""
    found = []
    while env is not None:
        if "get_state" in vars(type(env)):
            found.append(env)
        env = getattr(env, "env", None)
    return found
