"""State of an agent for checkpoints: everything that the next step depends on, as plain data."""

import random
from collections import deque
from typing import Any

import numpy as np
import torch

from agents.collecting.stateful import get_vec_state, set_vec_state

COUNTERS = ("num_timesteps", "_n_updates", "_episode_num")


def take_state(model: Any) -> dict[str, Any]:
    """Return the state of an agent as tensors and plain data, without the rows of the replay buffers."""
    buffer: Any = model.replay_buffer
    collected = model.collected
    return _plain(
        {
            "policy": model.policy.state_dict(),
            "average": None if model.average is None else model.average.state_dict(),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in _optimizers(model).items()},
            "log_ent_coef": getattr(model, "log_ent_coef", None),
            "counters": {name: getattr(model, name) for name in COUNTERS},
            "position": buffer.pos,
            "batches": getattr(buffer, "batches", 0),
            "last_obs": torch.from_numpy(np.array(model._last_obs)),
            "last_episode_starts": torch.from_numpy(np.array(model._last_episode_starts)),
            "last_visible": torch.from_numpy(np.array(model._last_visible)),
            "episodes": [{k: float(v) for k, v in e.items() if k in "rlt"} for e in model.ep_info_buffer or ()],
            "successes": [float(success) for success in model.ep_success_buffer or ()],
            "rollout": _rollout(model) if collected is None else None,
            "collected": None if collected is None else _tensors(collected.get_state()),
            "reward": buffer.reward.get_state() if hasattr(getattr(buffer, "reward", None), "get_state") else None,
            "potential": _fingerprint(model),
            "random": _random_states(model),
        }
    )


def restore_state(model: Any, state: dict[str, Any]) -> None:
    """Restore the state returned by `take_state` to an agent with the same configuration and to its environments.

    Raises:
        ValueError: The potential differs from that of the state.
    """
    if state["potential"] != _fingerprint(model):
        raise ValueError(
            "estimator, demonstrations or settings of the potential are not those of this run; put them back"
        )
    model.policy.load_state_dict(state["policy"])
    if model.average is not None:
        model.average.load_state_dict(state["average"])
    for name, optimizer in _optimizers(model).items():
        optimizer.load_state_dict(state["optimizers"][name])
    if state["log_ent_coef"] is not None:
        model.log_ent_coef.data.copy_(state["log_ent_coef"])  # type: ignore[union-attr]
    for name in COUNTERS:
        setattr(model, name, int(state["counters"][name]))
    model._last_obs = state["last_obs"].cpu().numpy()
    model._last_episode_starts = state["last_episode_starts"].cpu().numpy()
    model._last_visible = state["last_visible"].cpu().numpy()
    model.ep_info_buffer = deque(state["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state["successes"], maxlen=model._stats_window_size)
    if hasattr(model.replay_buffer, "batches"):
        model.replay_buffer.batches = state.get("batches", 0)
    if state.get("reward") is not None:
        model.replay_buffer.reward.set_state(state["reward"])
    if model.collected is None:
        _set_rollout(model, state["rollout"])
    else:
        model.collected.set_state(_arrays(state["collected"]))
    _restore_random_states(model, state["random"])


def _rollout(model: Any) -> dict[str, Any]:
    """Return the states of environments and guide, for an agent that steps its environments itself."""
    return {
        **get_vec_state(model.env),
        "guide": None if model.guide is None else model.guide.get_state(),
    }


def _set_rollout(model: Any, state: dict[str, Any]) -> None:
    set_vec_state(model.env, state)
    if model.guide is not None:
        model.guide.set_state(state["guide"])


def _optimizers(model: Any) -> dict[str, torch.optim.Optimizer]:
    named = {"actor": model.actor.optimizer, "critic": model.critic.optimizer}
    return named if model.ent_coef_optimizer is None else named | {"temperature": model.ent_coef_optimizer}


def _fingerprint(model: Any) -> str | None:
    """Return the fingerprint of Φ, whose values are stored in the replay buffer."""
    potential = getattr(model.replay_buffer, "potential", None)
    return None if potential is None else potential.fingerprint()


def _random_states(model: Any) -> dict[str, Any]:
    """Return the states of the agent's generators and of the global ones, which encoders and wrappers may draw from."""
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if model.device.type == "cuda" else [],
        "numpy": np.random.get_state(),  # noqa: NPY002
        "python": random.getstate(),
        "buffers": [buffer.rng.bit_generator.state for buffer in model.buffers().values()],
        "action_space": model.action_space.np_random.bit_generator.state,
    }


def _restore_random_states(model: Any, states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"].cpu())
    if model.device.type == "cuda":
        torch.cuda.set_rng_state_all([state.cpu() for state in states["cuda"]])
    np.random.set_state(states["numpy"])  # noqa: NPY002
    random.setstate(states["python"])
    for buffer, state in zip(model.buffers().values(), states["buffers"], strict=True):
        buffer.rng.bit_generator.state = state
    model.action_space.np_random.bit_generator.state = states["action_space"]


def _tensors(value: Any) -> Any:
    """Convert arrays to tensors."""
    if isinstance(value, dict):
        return {key: _tensors(item) for key, item in value.items()}
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def _arrays(value: Any) -> Any:
    """Convert tensors to arrays, except for random states."""
    if isinstance(value, dict):
        return {key: item if key == "random" else _arrays(item) for key, item in value.items()}
    return value.cpu().numpy() if isinstance(value, torch.Tensor) else value


def _plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays to Python numbers and lists, because checkpoints are loaded as plain data."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
