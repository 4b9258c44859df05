"""The replay buffer that composes the shaped reward when a batch is sampled."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from jaxtyping import Float
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from agents.finite import check_finite
from agents.following import Following
from shaping.reward import shaped_reward
from shaping.success import IS_SUCCESS, Success, succeeded

PotentialFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
Encode = Callable[[Tensor], Tensor]


class Batch(NamedTuple):
    """Transitions, as Stable-Baselines3's `ReplayBufferSamples`, for any of its algorithms.

    `discounts` replace γ where a row is of several steps; `features` replace the observations where a frozen encoder's
    output is stored.
    """

    observations: Float[Tensor, "batch ..."]
    actions: Float[Tensor, "batch action"]
    next_observations: Float[Tensor, "batch ..."]
    dones: Float[Tensor, "batch 1"]
    rewards: Float[Tensor, "batch 1"]
    discounts: Float[Tensor, "batch 1"] | None = None
    features: Float[Tensor, "batch features"] | None = None
    next_features: Float[Tensor, "batch features"] | None = None


def refuse_normalised(env: VecNormalize | None) -> None:
    """Refuse an environment by which Stable-Baselines3 would normalise what is sampled.

    Raises:
        ValueError: There is one.
    """
    if env is not None:
        raise ValueError("VecNormalize: updates would learn from what is not normalised; scale in the encoder")


class StoredReplayBuffer(ReplayBuffer):
    """Replay buffer that stores an observation once, and whose filled rows can be taken out and put back.

    Args:
        buffer_size: As for Stable-Baselines3's `ReplayBuffer`.
        observation_space: As for `ReplayBuffer`; no dictionary.
        *args: As for `ReplayBuffer`.
        optimize_memory_usage: Refused: Stable-Baselines3's own way to store an observation once.
        handle_timeout_termination: As for `ReplayBuffer`.
        **kwargs: As for `ReplayBuffer`.

    Raises:
        ValueError: `optimize_memory_usage` is set, or observations are dictionaries.
    """

    next_observations: Following  # type: ignore[assignment]
    rng: np.random.Generator
    demonstrations: "StoredReplayBuffer | None" = None

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        *args: Any,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        **kwargs: Any,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage shows the next episode's start as what follows a time limit; leave it out"
            )
        if isinstance(observation_space, spaces.Dict):
            raise ValueError(
                f"{type(self).__name__}: observations are a dictionary; wrap the environment in FlattenObservation"
            )
        # so set, no array of next observations is made
        kwargs |= {"optimize_memory_usage": True, "handle_timeout_termination": False}
        super().__init__(buffer_size, observation_space, *args, **kwargs)
        self.optimize_memory_usage, self.handle_timeout_termination = False, handle_timeout_termination
        self.next_observations = Following(self.observations)

    def filled(self) -> dict[str, np.ndarray]:
        """The stored rows, by name; of what follows them, what is not the next row, and for which rows (`_apart`)."""
        stored = {name: getattr(self, name)[: self.size()] for name in self._stored()}
        for name in self._following():
            stored[f"{name}_apart"], stored[name] = getattr(self, name).filled(self.size())
        return stored

    def fill(self, rows: dict[str, np.ndarray], position: int) -> None:
        """Put back the rows that `filled` returned; `position` is where the next one goes.

        Raises:
            ValueError: The rows do not fit this buffer.
        """
        count = len(rows["rewards"])
        for name in self._stored():
            target = getattr(self, name)
            if name not in rows or rows[name].shape != (count, *target.shape[1:]) or count > self.buffer_size:
                raise ValueError(f"stored transitions do not fit the replay buffer: {name}")
            target[:count] = rows[name]
        for name in self._following():
            if name not in rows or f"{name}_apart" not in rows:
                raise ValueError(f"stored transitions do not fit the replay buffer: {name}")
            getattr(self, name).fill(rows[f"{name}_apart"], rows[name], count)
        self.full = count == self.buffer_size
        # a full ring in a larger buffer is not full any more
        self.pos = position % self.buffer_size if self.full else count

    def _continues(self, before: int, obs: np.ndarray) -> np.ndarray:
        """Where observations (envs, …) go on from what follows a row; nowhere if there is none."""
        after = self.next_observations.after(before).reshape(self.n_envs, -1)
        same = np.asarray(obs, after.dtype).reshape(self.n_envs, -1) == after
        return same.all(axis=1) & (self.dones[before] == 0) & bool(self.size())

    def _stored(self) -> list[str]:
        return ["observations", "actions", "rewards", "dones", "timeouts"]

    def _following(self) -> list[str]:
        return ["next_observations"]


class ShapedReplayBuffer(StoredReplayBuffer):
    """Ring buffer that stores Φ(s), Φ(s′) beside each transition and forms r̄ when sampled.

    r̄ = scale · [r + γΦ(s′) − Φ(s)]  (paper, eq. reshaped_reward)

    Φ(s′) depends on how the step ended as in `shaping.PotentialShaping`: Φ's own constant where it reached the goal
    set, 0 where it terminated otherwise. Stored rewards stay those of the task. Demonstrated transitions lie in a part
    of their own, which takes a fixed share of every batch (paper, "importance sampling buffer"). With a frozen encoder
    (`store_features`) its output is stored once per transition, so that no update pays for the encoder.

    Args:
        *args: As for Stable-Baselines3's `ReplayBuffer`.
        potential: Φ(observations (B, …), success (B,)) → (B,); None leaves the reward as it is.
        gamma: γ of the shaping; it never follows the learner's annealed discount.
        reward_scale: Factor on the composed reward.
        seed: Seed of the sampling.
        success: How the task says that a step reached the goal set: a key of `info`, or a function of it.
        **kwargs: As for `ReplayBuffer`.
    """

    def __init__(
        self,
        *args: Any,
        potential: PotentialFunction | None = None,
        gamma: float = 0.99,
        reward_scale: float = 1.0,
        seed: int = 0,
        success: Success = IS_SUCCESS,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.potential, self.gamma, self.reward_scale = potential, gamma, reward_scale
        self.success = success
        self.rng = np.random.default_rng(seed)
        self.potentials = np.zeros((self.buffer_size, self.n_envs, 2), np.float32)  # Φ(s), Φ(s′)
        self.successes = np.zeros((self.buffer_size, self.n_envs), bool)
        self.encode: Encode | None = None
        self.features: np.ndarray | None = None
        self.next_features: Following | None = None
        self.demonstrations: ShapedReplayBuffer | None = None
        self.demonstration_share = 0.0

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one transition of every environment, with its potentials and features.

        Within an episode Φ(s) is Φ(s′) of the row before, so Φ and the encoder run once per step.

        Raises:
            NotFiniteError: A number to be stored is not finite; nothing is stored.
            ValueError: An episode terminates, and nothing says whether it succeeded; nothing is stored.
        """
        obs, next_obs = (np.reshape(seen, (self.n_envs, *self.obs_shape)) for seen in (obs, next_obs))
        row, before = self.pos, self.pos - 1  # index −1 is the ring's last row
        continues = self._continues(before, obs)
        truncated = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        terminal = np.asarray(done, bool) & ~truncated
        needed = terminal & (self.potential is not None)
        success = np.array([succeeded(i, self.success, n) for i, n in zip(infos, needed.tolist(), strict=True)])
        check_finite(observation=obs, next_observation=next_obs, action=action, reward=reward)
        if self.potential is not None:
            self.potentials[row, :, 0] = self.potentials[before, :, 1]
            if not continues.all():
                starts = obs[~continues]
                self.potentials[row, ~continues, 0] = self.potential(starts, np.zeros(len(starts), bool))
            self.potentials[row, :, 1] = _following_potential(self.potential, next_obs, terminal, success)
            check_finite(potential=self.potentials[row])
        if self.features is not None and self.next_features is not None:
            features = self.next_features.after(before).copy()
            if not continues.all():
                features[~continues] = self._encoded(obs[~continues])
            next_features = self._encoded(next_obs)
            self.features[row], self.next_features[row] = features, next_features
        self.successes[row] = success
        super().add(obs, next_obs, action, reward, done, infos)

    def store_features(self, encode: Encode, features_dim: int) -> None:
        """From now on store what a frozen encoder, observations (B, …) → features (B, F), makes of each observation.

        Raises:
            ValueError: Transitions without features are stored already.
        """
        if self.size():
            raise ValueError("features can only be stored from the first transition on")
        self.encode = encode
        self.features = np.zeros((self.buffer_size, self.n_envs, features_dim), np.float32)
        self.next_features = Following(self.features)

    def set_demonstrations(self, demonstrations: "ShapedReplayBuffer", share: float) -> None:
        """Let `share` of every batch come from `demonstrations`."""
        if not 0.0 < share < 1.0:
            raise ValueError(f"the demonstration share is {share}; it must lie between 0 and 1")
        self.demonstrations, self.demonstration_share = demonstrations, share

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Batch:  # type: ignore[override]
        """Draw transitions uniformly, and the demonstrations' share of the batch from their part.

        Raises:
            ValueError: The algorithm's environment is normalised.
        """
        refuse_normalised(env)
        if self.demonstrations is None:
            return self._batch(*self._draw(batch_size))
        self.demonstrations.device = self.device  # Stable-Baselines3 moves a loaded buffer, and knows no parts
        shown = round(self.demonstration_share * batch_size)
        parts = (
            self._batch(*self._draw(batch_size - shown)),
            self.demonstrations._batch(*self.demonstrations._draw(shown)),
        )
        joined: list[Any] = [None if a is None else torch.cat([a, b]) for a, b in zip(*parts, strict=True)]  # type: ignore[list-item]
        return Batch(*joined)

    def recompute_potentials(self, potential: PotentialFunction) -> None:
        """Replace Φ, and with it every cached potential."""
        self.potential = potential
        rows, oldest = np.arange(self.size()), self.pos if self.full else 0
        for env in range(self.n_envs):
            observations = self.observations[rows, env]
            following = self.next_observations[rows, np.full_like(rows, env)]
            ended, success = self.dones[rows, env] > 0, self.successes[rows, env]
            same = (observations == np.roll(following, 1, axis=0)).reshape(len(rows), -1).all(axis=1)
            in_goal = same & np.roll(success & ~ended, 1)  # a task may go on in its goal set
            in_goal[oldest : oldest + 1] = False  # what came before it is not known
            self.potentials[rows, env, 0] = potential(observations, in_goal)
            terminal = ended & (self.timeouts[rows, env] == 0)
            self.potentials[rows, env, 1] = _following_potential(potential, following, terminal, success)
        if self.demonstrations is not None:
            self.demonstrations.recompute_potentials(potential)

    def _stored(self) -> list[str]:
        names = [*super()._stored(), "successes", "potentials"]
        return names if self.features is None else [*names, "features"]

    def _following(self) -> list[str]:
        return super()._following() if self.features is None else [*super()._following(), "next_features"]

    def _draw(self, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        return self.rng.integers(self.size(), size=batch_size), self.rng.integers(self.n_envs, size=batch_size)

    def _batch(self, rows: np.ndarray, envs: np.ndarray) -> Batch:
        dones = self.dones[rows, envs] * (1 - self.timeouts[rows, envs])
        potentials = self.potentials[rows, envs]
        rewards = self.rewards[rows, envs]
        if self.potential is not None:
            rewards = shaped_reward(rewards, potentials[:, 0], potentials[:, 1], self.gamma)
        features = next_features = None
        if self.features is not None and self.next_features is not None:
            features = self.to_torch(self.features[rows, envs])
            next_features = self.to_torch(self.next_features[rows, envs])
        return Batch(
            self.to_torch(self.observations[rows, envs]),
            self.to_torch(self.actions[rows, envs]),
            self.to_torch(self.next_observations[rows, envs]),
            self.to_torch(dones[:, None]),
            self.to_torch((self.reward_scale * rewards)[:, None]),
            features=features,
            next_features=next_features,
        )

    @torch.inference_mode()
    def _encoded(self, observations: np.ndarray) -> np.ndarray:
        assert self.encode is not None
        features = self.encode(torch.as_tensor(observations, device=self.device)).cpu().numpy()
        check_finite(features=features)
        return features


def _following_potential(
    potential: PotentialFunction, observations: np.ndarray, terminal: np.ndarray, success: np.ndarray
) -> np.ndarray:
    """Φ(s′): 0 where the episode failed."""
    return np.where(terminal & ~success, 0.0, potential(observations, success))
