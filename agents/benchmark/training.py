"""Benchmark stages of updates and training steps of the project's learner and Stable-Baselines3's on equal data."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.logger import Logger

from agents.benchmark.stages import BUFFER, OBSERVATIONS, Settings, Stage
from agents.benchmark.stock import StockPush, make_stock_agent
from agents.benchmark.timing import Timer, Work
from agents.methods.shaped_sac import make_agent
from agents.replay.buffer import StoredReplayBuffer

COLLECTED = 200  # transitions that are repeated to fill the replay buffers
STEPS_AT_ONCE = 5


def training_stages(settings: Settings) -> Iterator[Stage]:
    """Yield the stages of updates with batch size 512 and of training steps without resets.

    Three cases are compared for clouds: both learners train all parameters; the stock learner shares one encoder, as
    the project's learner always does; both learners freeze their encoder.
    """
    for obs, noun in OBSERVATIONS.items():
        encoder = "separate" if obs == "pointcloud" else None
        yield from _stages(settings, obs, obs, noun, "scratch", encoder, part_of=obs)
    yield from _stages(settings, "pointcloud", "pointcloud_shared", "clouds, stock encoder shared", "scratch", "shared")
    yield from _stages(settings, "pointcloud", "pointcloud_frozen", "features stored", "frozen", "frozen")


def _stages(
    settings: Settings,
    obs: str,
    name: str,
    noun: str,
    encoder_training: str,
    encoder: str | None,
    part_of: str | None = None,
) -> Iterator[Stage]:
    """Yield update and training step of the project's learner (`encoder_training`) and the stock learner (`encoder`).

    If the device supports two number formats, the project's update is measured in the other one too.
    """
    timer, config = settings.timer, settings.config(obs, encoder_training)
    env, stock_env = settings.env(obs), StockPush(clouds=obs == "pointcloud")
    transitions = collect(env)
    batch, updates = config.learner.batch_size, round(config.learner.update_ratio * config.learner.block)
    stock = make_stock_agent(
        stock_env,
        encoder,
        batch_size=batch,
        gradient_steps=updates,
        buffer_size=BUFFER,
        learning_starts=0,
        device=timer.device,
    )
    agents: dict[str, Any] = {"project": make_agent(config, env), "stock": stock}
    for agent in agents.values():
        _prepare(agent, transitions)
    works = {side: _update(agent, batch, timer) for side, agent in agents.items()}
    yield Stage(f"sac_{name}", f"SAC update, {noun}", works, part_of, updates)
    if settings.other_precision is not None:
        precision = settings.other_precision
        other = make_agent(settings.config(obs, encoder_training, precision), env)
        _prepare(other, transitions)
        both = works | {"project": _update(other, batch, timer)}
        yield Stage(f"sac_{name}_{precision}", f"SAC update, {noun}, {precision}", both)
    works = {side: _learn(agent, timer) for side, agent in agents.items()}
    yield Stage(f"train_{name}", f"training step, {noun}", works)
    stock_env.close()
    env.close()


def collect(env: gym.Env) -> list[tuple[Any, ...]]:
    """Collect transitions with random actions, as arguments of `ReplayBuffer.add`."""
    rng = np.random.default_rng(0)
    transitions = []
    observation, _ = env.reset(seed=0)
    for _ in range(COLLECTED):
        action = rng.uniform(-1.0, 1.0, 2).astype(np.float32)
        following, reward, terminated, truncated, info = env.step(action)
        done = np.array([terminated or truncated])
        info["TimeLimit.truncated"] = truncated
        transitions.append((observation[None], following[None], action[None], np.array([reward]), done, [info]))
        observation = env.reset()[0] if done[0] else following
    return transitions


def fill(buffer: ReplayBuffer, transitions: list[tuple[Any, ...]]) -> None:
    """Fill a replay buffer by repeating transitions; their number must divide the buffer size."""
    for transition in transitions:
        buffer.add(*transition)
    if isinstance(buffer, StoredReplayBuffer):
        repeat_rows(buffer)
        return
    for array in vars(buffer).values():
        if isinstance(array, np.ndarray) and len(array) == buffer.buffer_size:
            array[:] = np.resize(array[: len(transitions)], array.shape)
    buffer.full = True


def repeat_rows(buffer: StoredReplayBuffer) -> None:
    """Fill a replay buffer by repeating its rows; their number must divide the buffer size."""
    times = buffer.buffer_size // buffer.size()
    buffer.fill({name: np.concatenate([rows] * times) for name, rows in buffer.filled().items()}, buffer.pos)


def _prepare(agent: Any, transitions: list[tuple[Any, ...]]) -> None:
    agent.set_logger(Logger(None, []))
    fill(agent.replay_buffer, transitions)


def _update(agent: Any, batch_size: int, timer: Timer) -> Work:
    return timer.timed(lambda: agent.train(1, batch_size))


def _learn(agent: Any, timer: Timer) -> Work:
    """Return the work of training steps: act, step, compute Φ, store, update."""
    return timer.timed(lambda: agent.learn(STEPS_AT_ONCE, log_interval=None, reset_num_timesteps=False), STEPS_AT_ONCE)
