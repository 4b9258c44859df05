"""Sparse toys: a point must reach a place on the other side. Random actions almost never do."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from agents.imitation.adril import AdRIL
from agents.imitation.cloning import BehaviouralCloning
from agents.imitation.dril import DRIL
from agents.imitation.expert import Embedding, expert_pairs
from agents.imitation.gail import GAIL
from agents.imitation.pwil import PWIL
from agents.replay import ShapedReplayBuffer
from agents.sac import SAC
from agents.sac.policy import SharedEncoderPolicy

START, GOAL, SPREAD, RADIUS, STEP, HORIZON = -0.7, 0.7, 0.2, 0.1, 0.1, 30


class Identity(nn.Module):
    """Encoder without weights."""

    def forward(self, observation):
        return observation


class Reach(gym.Env):
    """Point at (x, …) that starts near x = −0.7, moves up to 0.1 a step, and must come near (0.7, 0, …).

    Args:
        dims: Dimensions: 1 is a corridor, 2 a plane.
        ends: Whether the goal ends the episode; otherwise the point must be there at the time limit.
    """

    def __init__(self, dims: int = 2, ends: bool = True) -> None:
        self.ends, self.goal = ends, np.eye(dims)[0] * GOAL
        self.observation_space = gym.spaces.Box(-1.5, 1.5, (dims,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (dims,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.count = np.eye(len(self.goal))[0] * START, 0
        self.place[-1] += self.np_random.uniform(-SPREAD, SPREAD)
        return self.place.astype(np.float32), {}

    def step(self, action):
        self.place, self.count = np.clip(self.place + STEP * np.asarray(action), -1.2, 1.2), self.count + 1
        there, over = bool(np.linalg.norm(self.place - self.goal) < RADIUS), self.count >= HORIZON
        ended = there and self.ends
        info = {"is_success": there and (self.ends or over)}
        return self.place.astype(np.float32), float(there), ended, over and not ended, info

    def expert(self, observation: np.ndarray) -> np.ndarray:
        """Move towards the goal, not quite at full speed."""
        return np.clip((self.goal - observation) / (2 * STEP), -0.8, 0.8).astype(np.float32)


def toy_of(name: str) -> Reach:
    """PWIL's rewards are positive, so that its agents avoid an early end; theirs is a corridor without one."""
    return Reach(dims=1, ends=False) if name == "pwil" else Reach()


def episodes(env: Reach, act: Any, count: int = 1, seed: int = 0) -> ShapedReplayBuffer:
    """Episodes of a function of observations, in a replay buffer."""
    buffer = ShapedReplayBuffer(count * HORIZON, env.observation_space, env.action_space, device="cpu")
    for number in range(count):
        observation, _ = env.reset(seed=seed + number)
        done = False
        while not done:
            action = np.asarray(act(observation), np.float32)
            following, reward, terminated, truncated, info = env.step(action)
            done, info["TimeLimit.truncated"] = terminated or truncated, truncated
            buffer.add(observation[None], following[None], action[None], np.array([reward]), np.array([done]), [info])
            observation = following
    return buffer


SETTINGS: dict[str, dict[str, Any]] = {
    "gail": {"gamma": 0.97},
    "pwil": {"gamma": 0.9, "ent_coef": "auto_0.5", "replay_buffer_kwargs": {"n_steps": 3}},
    "dril": {"gamma": 0.97},
    "adril": {"gamma": 0.98},
    "bc": {"learning_starts": 0},
}


DEMONSTRATIONS = {"bc": 100}  # the others have 20


def make(name: str, seed: int = 0, demonstrations: int | None = None) -> Any:
    """Make an agent of a baseline for its toy, with its reward."""
    settings: dict[str, Any] = {"learning_rate": 1e-3, "learning_starts": 300, "batch_size": 64, "tau": 0.05}
    settings |= {"ent_coef": "auto_0.1", "backup_entropy": False, "actor_tau": 0.005, "buffer_size": 10_000}
    settings |= {"replay_buffer_class": ShapedReplayBuffer, "seed": seed, "device": "cpu"} | SETTINGS[name]
    kind, env = BehaviouralCloning if name == "bc" else SAC, toy_of(name)
    model = kind(SharedEncoderPolicy, env, policy_kwargs={"net_arch": [32, 32]}, **settings)
    buffer: Any = model.replay_buffer
    buffer.set_demonstrations(
        episodes(env, env.expert, demonstrations or DEMONSTRATIONS.get(name, 20)), alternate=name == "adril"
    )
    if name != "bc":
        buffer.reward = reward_of(name, model, seed)
    return model


def reward_of(name: str, model: Any, seed: int = 0) -> Any:
    shown = model.replay_buffer.demonstrations
    embedding = Embedding(Identity(), torch.device("cpu"))
    pairs = expert_pairs(shown, embedding)
    if name == "gail":
        return GAIL(pairs, embedding, model.gamma, seed)
    if name == "pwil":
        return PWIL(pairs, embedding, HORIZON)
    if name == "adril":
        return AdRIL(int(shown.dones.sum()), model.gamma)
    reward = DRIL(pairs, embedding, model.gamma, seed, model.actor, shown)
    reward.prepare()
    return reward


def success_rate(env: Reach, act: Any, count: int = 50) -> float:
    """Success rate of a function of observations in episodes that no training has."""
    buffer = episodes(env, act, count, seed=1000)
    return buffer.successes[: buffer.size()].sum() / count


def averaged(model: Any) -> Any:
    """Evaluated policy of an agent, as a function of observations."""
    actor = model.averaged_actor
    return lambda seen: actor(torch.as_tensor(seen[None]), deterministic=True)[0].detach().numpy().clip(-1, 1)
