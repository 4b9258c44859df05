"""Collection in parallel to learning: a copy of the policy acts in the training environments during gradient steps.

Environment steps are collected in blocks. During the gradient steps for block k, block k + 1 is collected with the
weights from before these gradient steps, in a worker process or, with the same result, in this process:

    collecting   | block k          | block k + 1      | block k + 2
    acts with    | θ after k − 2    | θ after k − 1    | θ after k
    updates of   |        k − 1     |        k         |        k + 1

A block depends only on the weights, the collector's own random state and the environments, so that the same seed gives
the same run independently of timing. Every block is returned together with the state after it. A checkpoint stores this
state and can therefore be written even after the worker process has died.
"""

import copy
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from agents.collecting.randomness import drawing_from, seeded
from agents.collecting.stateful import get_vec_state, set_vec_state
from agents.collecting.stopwatch import Stopwatch
from agents.collecting.worker import Inline, Worker
from agents.finite import NotFiniteError
from agents.replay.buffer import StoredReplayBuffer
from shaping.visibility import puck_visible

Weights = dict[str, np.ndarray]


class Step(NamedTuple):
    """One step of every environment, as returned by Stable-Baselines3's `VecEnv`, and its row in the replay buffer."""

    actions: np.ndarray
    observations: np.ndarray
    rewards: np.ndarray
    dones: np.ndarray
    infos: list[dict[str, Any]]
    row: dict[str, np.ndarray]
    guided: float | None  # share of the environments in which the guide acted; None without a guide


def watch(env: Any, clock: Stopwatch) -> None:
    """Measure the time of an environment ("physics") and of its wrappers that change the observation ("rendering")."""
    while env is not env.unwrapped:
        if env.observation_space is not env.env.observation_space:
            env.step, env.reset = clock.watched(env.step, "rendering"), clock.watched(env.reset, "rendering")
        env = env.env
    env.step, env.reset = clock.watched(env.step, "physics"), clock.watched(env.reset, "physics")


class Collector:
    """Collector of steps in the training environments.

    Args:
        model: Agent before its first step; from then on, only the collector uses its environments and its guide.
        recorder: Replay buffer like the agent's, with two rows, which composes the row of a step.
        seed: Seed of the exploration.
    """

    def __init__(self, model: Any, recorder: StoredReplayBuffer, seed: int) -> None:
        self.env: VecEnv = model.env
        self.actor = copy.deepcopy(model.actor).to("cpu").requires_grad_(False)
        self.actor.set_training_mode(False)
        self.action_space = copy.deepcopy(model.action_space)
        self.action_space.seed(seed)
        self.scale, self.unscale = model.policy.scale_action, model.policy.unscale_action
        self.guide, self.recorder, self.learning_starts = model.guide, recorder, model.learning_starts
        self.observations: Any = self.env.reset()
        self.visible = puck_visible(self._reset_infos())
        self.starts = np.ones(self.env.num_envs, bool)
        self.num_timesteps = 0
        self.random = seeded(seed)
        self.clock = Stopwatch(rest="waiting")
        for env in self.env.envs:  # type: ignore[attr-defined]
            watch(env, self.clock)
        self.reward: Any = getattr(recorder, "reward", None)
        potential = getattr(recorder, "potential", None)
        if potential is not None:
            recorder.potential = self.clock.watched(potential, "potential")  # type: ignore[attr-defined]

    def collect(self, weights: Weights | None, steps: int) -> tuple[list[Step], dict[str, Any], dict[str, float]]:
        """Take `steps` steps with the given weights, or with the previous weights if None.

        Returns:
            The steps, the state after them (`get_state`), and the shares of the time so far.

        Raises:
            NotFiniteError: A number is not finite; `arrays` holds the last transition of the environment.
        """
        if weights is not None:
            self.actor.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        try:
            with drawing_from(self.random), self.clock("other"):
                collected = [self._step() for _ in range(steps)]
        except NotFiniteError as error:
            if "role" not in error.arrays:  # errors of `FiniteEnv` already contain the transition
                finite: Any = self.env.envs[error.index[0]].env  # type: ignore[attr-defined]
                error.arrays = finite.transition | error.arrays
            raise
        return collected, self.get_state(), self.clock.shares()

    def _step(self) -> Step:
        with self.clock("acting"):
            actions, stored, guided = self._act()
        observations: Any
        observations, rewards, dones, infos = self.env.step(actions)
        for info, starts, visible in zip(infos, self.starts, self.visible, strict=True):
            if starts:  # tells the replay buffer whether the puck is visible in the first frame
                info.setdefault("reset_info", {"puck_visible": bool(visible)})
        following = observations.copy()
        for index in np.flatnonzero(dones):
            following[index] = infos[index]["terminal_observation"]
        with self.clock("storing"):
            self.recorder.add(self.observations, following, stored, rewards, dones, infos)
        self.observations, self.starts = observations, dones
        self.visible = np.where(dones, puck_visible(self._reset_infos()), puck_visible(infos))
        self.num_timesteps += len(dones)
        return Step(actions, observations, rewards, dones, infos, self.recorder.row(self.recorder.pos - 1), guided)

    def _act(self) -> tuple[np.ndarray, np.ndarray, float | None]:
        """Return the actions, the actions scaled to [−1, 1] for the replay buffer, and the share of guided actions."""
        if self.num_timesteps < self.learning_starts:
            actions = np.array([self.action_space.sample() for _ in range(self.env.num_envs)])
        else:
            actions, _ = self.actor.predict(self.observations, deterministic=False)
        scaled = self.scale(actions)
        if self.guide is None:
            return self.unscale(scaled), scaled, None
        guided, where = self.guide(self.observations, self.visible, self.num_timesteps)
        scaled[where] = guided[where]
        return self.unscale(scaled), scaled, float(where.mean())

    def _reset_infos(self) -> list[dict[str, Any]]:
        return self.env.unwrapped.reset_infos  # type: ignore[attr-defined]

    def get_state(self) -> dict[str, Any]:
        """Return everything except the weights that the next step depends on, as plain data and arrays."""
        return {
            "observations": self.observations,
            "visible": self.visible,
            "starts": self.starts,
            "num_timesteps": self.num_timesteps,
            **get_vec_state(self.env),
            "guide": None if self.guide is None else self.guide.get_state(),
            "reward": self.reward.get_state() if hasattr(self.reward, "collect") else None,
            "row": self.recorder.row(self.recorder.pos - 1) if self.recorder.size() else None,
            "random": dict(self.random),
            "action_space": self.action_space.np_random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`."""
        self.observations, self.num_timesteps = np.asarray(state["observations"]), state["num_timesteps"]
        self.visible, self.starts = np.asarray(state["visible"]), np.asarray(state["starts"])
        set_vec_state(self.env, state)
        if self.guide is not None:
            self.guide.set_state(state["guide"])
        if state.get("reward") is not None:
            self.reward.set_state(state["reward"])
        if state["row"] is not None:
            self.recorder.put({name: np.asarray(value) for name, value in state["row"].items()})
        self.random = dict(state["random"])
        self.action_space.np_random.bit_generator.state = state["action_space"]


class CollectedSteps(VecEnvWrapper):
    """Vectorised environment that returns the steps of a `Collector` and ignores the caller's actions.

    Args:
        collector: Collector of the steps; only this class calls it from then on.
        model: Agent that learns from the steps.
        beside: Whether to collect in a worker process instead of this process; the result is the same.
    """

    def __init__(self, collector: Collector, model: Any, beside: bool) -> None:
        super().__init__(collector.env)
        self.collector, self.model, self.beside = collector, model, beside
        self.state = collector.get_state()  # state of the collector after the last received block
        self.acting: Weights | None = None  # weights for the next block; None: the initial weights
        self.steps: deque[Step] = deque()
        self.asked = 0  # steps of the requested block
        self.caller: Inline | Worker | None = None
        self.clock = Stopwatch(("waiting", "storing", "updating", "evaluating"))
        self.collecting: dict[str, float] = {}  # shares of the collector's time

    def next_step(self) -> Step:
        """Return the step that the next call of `step` returns."""
        if not self.steps:
            self._receive()
        return self.steps[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Do nothing, because the step is already collected."""

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Return the next step."""
        step = self.steps.popleft()
        self.row = step.row
        return step.observations, step.rewards, step.dones, step.infos

    def reset(self) -> np.ndarray:
        """Return the current observations."""
        return self.collector.observations

    def get_state(self) -> dict[str, Any]:
        """Return the state of the collector and the weights for the next block, as plain data and arrays."""
        return {"collector": self.state, "acting": self.acting}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `get_state`, before the first step."""
        self.state, self.acting = state["collector"], state["acting"]
        self.collector.set_state(self.state)

    def shares(self) -> dict[str, float]:
        """Return the shares of the learner's and of the collector's time by name."""
        return {
            f"{role}/{name}": share
            for role, shares in (("learner", self.clock.shares()), ("collector", self.collecting))
            for name, share in shares.items()
        }

    def hidden_frames(self) -> int | None:
        """Return the number of training frames so far in which the puck was hidden, or None without cameras."""
        layers = [layer for environment in self.state["environments"] for layer in environment]
        counts = [layer["hidden_frames"] for layer in layers if "hidden_frames" in layer]
        return sum(counts) if counts else None

    @property
    def failed(self) -> bool:
        """Whether the collection has failed; the agent is then in the state after the last block and its updates."""
        return self.caller is not None and self.caller.failed

    def stop(self) -> None:
        """End the worker process and discard the requested block."""
        if self.caller is not None:
            self.caller.close()
        self.caller, self.asked = None, 0

    def _receive(self) -> None:
        """Receive a block, and request the next."""
        if self.caller is None:
            collect = self.collector.collect
            self.caller = Worker(collect, "the collecting process") if self.beside else Inline(collect)
        if not self.asked:
            self._ask(0)
        with self.clock("waiting"):
            steps, self.state, self.collecting = self.caller.receive()
        self.steps.extend(steps)
        self.acting = {name: value.cpu().numpy().copy() for name, value in self.model.actor.state_dict().items()}
        self._ask(len(steps))

    def _ask(self, received: int) -> None:
        left = self.model._total_timesteps - self.model.num_timesteps - received * self.num_envs
        self.asked = min(self.model.train_freq.frequency, -(-left // self.num_envs))
        if self.asked:
            self.caller.send(self.acting, self.asked)  # type: ignore[union-attr]
