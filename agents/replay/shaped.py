"""Replay buffer that computes the reward, by default the shaped reward, when a batch is sampled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from agents.finite import check_finite
from agents.replay.buffer import Batch, StoredReplayBuffer, refuse_normalised
from agents.replay.next_observations import Following
from agents.replay.rewards import PotentialReward, Reward, Rows, task_reward
from shaping.success import IS_SUCCESS, Success, succeeded
from shaping.visibility import LastSeen, PotentialFunction, known_potential, puck_visible

Encode = Callable[[Tensor], Tensor]
Frames = tuple[np.ndarray, np.ndarray]  # Φ, and a mask of where it is known

SHOWN, NEXT_SHOWN, SEEN = 1, 2, 4  # bits: the puck is visible in s; in s′; in any frame of the episode up to s′


class ShapedReplayBuffer(StoredReplayBuffer):
    """Replay buffer that stores Φ(s) and Φ(s′) with each transition and computes r̄ when sampled.

    r̄ = scale · [r + γΦ(s′) − Φ(s)]  (paper, eq. reshaped_reward)

    As in `shaping.PotentialShaping`, Φ(s′) is the terminal constant of Φ if the step reached the goal set, 0 if the
    episode terminated otherwise, and the last known value if the puck is not visible in s′. Without
    `handle_timeout_termination`, a time limit counts as termination, for the learner and for Φ. The first step of an
    episode may hold the `info` of its reset in `info["reset_info"]`; without it, the puck counts as visible in the
    first frame. Stored rewards are those of the task. Demonstrated transitions are stored in a separate buffer, which
    provides a fixed share of every batch (paper, "importance sampling buffer"). The output of a frozen encoder can be
    stored once per transition (`store_features`), so that gradient steps do not evaluate the encoder.

    Args:
        *args: As for Stable-Baselines3's `ReplayBuffer`.
        potential: Φ(observations (B, …), success (B,)) → (B,); None disables the shaping.
        reward: Reward of sampled rows; by default r̄ with a potential, else the reward of the task.
        gamma: Discount γ of the shaping; by default that of the potential, or 0.99 if it has none. It does not follow
            the annealed discount of the learner.
        reward_scale: Factor on the reward.
        n_steps: Number n of the n-step return, which is discounted by the learner's current γ̄ and is shorter where the
            episode ends earlier.
        seed: Seed of the sampling.
        success: Success criterion of a step: a key of `info`, or a function of `info`.
        **kwargs: As for `ReplayBuffer`.
    """

    def __init__(
        self,
        *args: Any,
        potential: PotentialFunction | None = None,
        reward: Reward | None = None,
        gamma: float | None = None,
        reward_scale: float = 1.0,
        n_steps: int = 1,
        seed: int = 0,
        success: Success = IS_SUCCESS,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.potential, self.reward_scale = potential, reward_scale
        self.gamma = float(getattr(potential, "gamma", 0.99) if gamma is None else gamma)
        self.reward = reward or (task_reward if potential is None else PotentialReward(self.gamma))
        self.success = success
        self.rng = np.random.default_rng(seed)
        self.potentials = np.zeros((self.buffer_size, self.n_envs, 2), np.float32)  # Φ(s), Φ(s′)
        self.sight = np.full((self.buffer_size, self.n_envs), SHOWN | NEXT_SHOWN | SEEN, np.uint8)
        self.successes = np.zeros((self.buffer_size, self.n_envs), bool)
        self.encode: Encode | None = None
        self.features: np.ndarray | None = None
        self.next_features: Following | None = None
        self.demonstrations: ShapedReplayBuffer | None = None
        self.demonstrated = False
        self.demonstration_share, self.alternate, self.batches = 0.0, False, 0
        self.n_steps, self.discount = n_steps, self.gamma

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one transition of every environment with its potentials and features.

        Within an episode, Φ(s) is Φ(s′) of the row before, so Φ and the encoder are evaluated once per step.

        Raises:
            NotFiniteError: A number to be stored is not finite; the transition is not stored.
            ValueError: An episode terminates and `info` does not tell whether it succeeded; the transition is not
                stored.
        """
        obs, next_obs = (np.reshape(seen, (self.n_envs, *self.obs_shape)) for seen in (obs, next_obs))
        row, before = self.pos, self.pos - 1  # index −1 is the ring's last row
        continues = self._continues(before, obs) & np.array(["reset_info" not in info for info in infos])
        truncated = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        terminal = np.asarray(done, bool) & ~(truncated & self.handle_timeout_termination)
        needed = terminal & ~truncated & (self.potential is not None)
        success = np.array([succeeded(i, self.success, n) for i, n in zip(infos, needed.tolist(), strict=True)])
        check_finite(observation=obs, next_observation=next_obs, action=action, reward=reward)
        if self.potential is not None:
            shown = puck_visible(info.get("reset_info", {}) for info in infos)
            shown = np.where(continues, self.sight[before] & NEXT_SHOWN > 0, shown)
            next_shown = puck_visible(infos)
            first = known_potential(self.potential, obs, shown & ~continues)
            following = known_potential(self.potential, next_obs, next_shown, terminal, success)
            self._put_potentials(row, continues, SHOWN * shown + NEXT_SHOWN * next_shown, first, following)
            check_finite(potential=self.potentials[row])
        if self.features is not None and self.next_features is not None:
            features = self.next_features.after(before).copy()
            if not continues.all():
                features[~continues] = self._encoded(obs[~continues])
            next_features = self._encoded(next_obs)
            check_finite(features=features, next_features=next_features)
            self.features[row], self.next_features[row] = features, next_features
        self.successes[row] = success
        if hasattr(self.reward, "collect"):
            reward = self.reward.collect(obs, np.reshape(action, (self.n_envs, -1)), done)
        super().add(obs, next_obs, action, reward, done, infos)

    def store_features(self, encode: Encode, features_dim: int) -> None:
        """Enable the storage of features.

        Args:
            encode: Frozen encoder, observations (B, …) → features (B, F).
            features_dim: Number of features F.

        Raises:
            ValueError: The buffer already holds transitions without features.
        """
        if self.size():
            raise ValueError("features can only be stored from the first transition on")
        self.encode = encode
        self.features = np.zeros((self.buffer_size, self.n_envs, features_dim), np.float32)
        self.next_features = Following(self.features)

    def set_demonstrations(
        self, demonstrations: "ShapedReplayBuffer", share: float = 0.0, alternate: bool = False
    ) -> None:
        """Set the buffer of demonstrated transitions.

        Args:
            demonstrations: Buffer of demonstrated transitions.
            share: Their share of every batch; without one they are only kept, for a reward that uses them.
            alternate: Whether every other batch, the first included, consists of demonstrated transitions.

        Raises:
            ValueError: The share is not below 1, or negative.
        """
        if not 0.0 <= share < 1.0:
            raise ValueError(f"the demonstration share is {share}; it must be at least 0 and below 1")
        self.demonstrations, self.demonstration_share, self.alternate = demonstrations, share, alternate
        demonstrations.demonstrated = True

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Batch:  # type: ignore[override]
        """Draw transitions uniformly, with the share of demonstrated transitions from their buffer.

        Raises:
            ValueError: The environment of the algorithm is normalised by `VecNormalize`.
        """
        refuse_normalised(env)
        shown, self.batches = round(self.demonstration_share * batch_size), self.batches + 1
        if self.alternate:
            shown = batch_size * (self.batches % 2)
        drawn = self._draw(batch_size - shown)
        if hasattr(self.reward, "learn"):
            self.reward.learn(Rows(self, *drawn))
        if self.demonstrations is None or not shown:
            return self._batch(*drawn)
        self.demonstrations.device = self.device  # Stable-Baselines3 moves only the outer buffer
        demonstrated = self.demonstrations._batch(*self.demonstrations._draw(shown))
        if shown == batch_size:
            return demonstrated
        parts = zip(self._batch(*drawn), demonstrated, strict=True)
        joined: list[Any] = [None if a is None else torch.cat([a, b]) for a, b in parts]  # type: ignore[list-item]
        return Batch(*joined)

    def _put_potentials(
        self, row: int, continues: np.ndarray, sight: np.ndarray, first: Frames, following: Frames
    ) -> None:
        """Store Φ(s) and Φ(s′) of a row; `first` is Φ(s), used where the row does not continue the row before."""
        carried = self.potentials[row - 1, :, 1], self.sight[row - 1] & SEEN > 0
        potential, seen = (np.where(continues, *pair) for pair in zip(carried, first, strict=True))
        last = LastSeen(potential.astype(np.float32), seen)  # same type as r̄, so that γΦ(s′) − γΦ(s′) is exactly 0
        before, last = last.follow(following[0].astype(np.float32), following[1], self.gamma)
        self.potentials[row] = np.stack([before, last.potential], axis=1)
        self.sight[row] = sight + SEEN * last.seen

    def _stored(self) -> list[str]:
        names = [*super()._stored(), "successes", "potentials", "sight"]
        return names if self.features is None else [*names, "features"]

    def _following(self) -> list[str]:
        return super()._following() if self.features is None else [*super()._following(), "next_features"]

    def _draw(self, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        return self.rng.integers(self.size(), size=batch_size), self.rng.integers(self.n_envs, size=batch_size)

    def _batch(self, rows: np.ndarray, envs: np.ndarray) -> Batch:
        rewards, first = self.reward(Rows(self, rows, envs)), rows
        discounts = np.full(len(rows), self.discount, np.float32)
        for _ in range(self.n_steps - 1):
            moving = self._goes_on(rows, envs)
            rows = np.where(moving, (rows + 1) % self.buffer_size, rows)
            rewards = rewards + np.where(moving, discounts * self.reward(Rows(self, rows, envs)), 0.0).astype(
                np.float32
            )
            discounts = np.where(moving, discounts * self.discount, discounts).astype(np.float32)
        dones = self.dones[rows, envs] * (1 - self.timeouts[rows, envs])
        features = next_features = None
        if self.features is not None and self.next_features is not None:
            features = self.to_torch(self.features[first, envs])
            next_features = self.to_torch(self.next_features[rows, envs])
        return Batch(
            self.to_torch(self.observations[first, envs]),
            self.to_torch(self.actions[first, envs]),
            self.to_torch(self.next_observations[rows, envs]),
            self.to_torch(dones[:, None]),
            self.to_torch((self.reward_scale * rewards)[:, None]),
            discounts=self.to_torch(discounts[:, None]),
            features=features,
            next_features=next_features,
        )

    def _goes_on(self, rows: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """Return where the next row in the ring is the next step of the same episode."""
        newest = (self.pos - 1) % self.buffer_size
        return (rows != newest) & (self.dones[rows, envs] == 0) & self.next_observations.continues(rows, envs)

    @torch.inference_mode()
    def _encoded(self, observations: np.ndarray) -> np.ndarray:
        assert self.encode is not None
        return self.encode(torch.as_tensor(observations, device=self.device)).cpu().numpy()
