"""Wrapper that shapes the reward of any Gymnasium environment, for any algorithm.

With your own task, an estimator from `python -m agents.pretrain` and one recorded sequence of observations:

    import gymnasium, numpy
    from shaping import Potential, PotentialShaping, ValueEstimator

    estimator = ValueEstimator.load("estimator.pt", observation="state")
    demonstration = numpy.load("demonstration.npy")              # (H + 1, 8), ends in the goal set
    potential = Potential(estimator, [demonstration])
    env = PotentialShaping(gymnasium.make("MyTask-v0"), potential)
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    print(info["unshaped_reward"], info["potential"], info["next_potential"])

A custom potential is a function of a batch of observations (batch, ...) and success flags (batch,):

    def potential(observations, success):
        return numpy.where(success, 1.0, numpy.exp(-abs(observations[:, 0])))

The task should set `terminated` only in terminal states and `truncated` at a time limit. By default,
`info["is_success"]` tells whether a step reached the goal set; the argument `success` sets another key of `info` or a
function of `info`.
"""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from jaxtyping import Bool, Float, Shaped

from shaping.reward import shaped_reward
from shaping.success import IS_SUCCESS, Success, succeeded
from shaping.visibility import LastSeen, PotentialFunction, known_potential, puck_visible


class PotentialShaping(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Replace the reward r of an environment by r̄ = r + γ Φ(s′) − Φ(s).

    Φ is evaluated once per step: Φ(s′) of a step is Φ(s) of the next. Φ(s′) depends on how the step ended:

    - in the goal set (according to `success`): the constant of Φ there, even if the episode continues, because a Φ that
      is a function of the state only keeps the optimal policies;
    - terminated elsewhere: 0, so that no potential can reward failures;
    - truncated, or not ended: the ordinary Φ(s′). A time limit is not a terminal state; bootstrap from s′.

    The initial state counts as outside the goal set. A frame that does not show the puck (`info["puck_visible"]` is
    False) takes the last Φ of the episode; transitions up to and including the one into the first visible frame are not
    shaped (see `shaping.visibility`).

    The wrapper adds "potential" Φ(s), "next_potential" Φ(s′) and "unshaped_reward" r to `info`; after a reset, s′ is s
    and r is 0.

    ``gymnasium.make(env.spec)`` creates another environment with the same potential. As for all functions passed to
    Gymnasium's wrappers, the potential cannot be stored as JSON: ``env.spec.to_json()`` raises a TypeError.

    Args:
        env: Environment with a Box observation space that the potential accepts.
        potential: Function of observations (batch, *shape) and success flags (batch,) that returns Φ (batch,).
        gamma: Discount γ of the task; defaults to that of the potential, or 0.99 if it has none.
        success: Key of `info`, or function of it, that tells whether a step reached the goal set.

    Raises:
        ValueError: The observation space is not a Box, γ is outside [0, 1], Φ is not one finite number, or an episode
            terminates and its success is not reported.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        potential: PotentialFunction,
        gamma: float | None = None,
        success: Success = IS_SUCCESS,
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, potential=potential, gamma=gamma, success=success, _disable_deepcopy=True
        )
        super().__init__(env)
        if not isinstance(env.observation_space, gymnasium.spaces.Box):
            raise ValueError(f"observation space is {env.observation_space}; potential shaping needs a Box")
        self.gamma = float(getattr(potential, "gamma", 0.99) if gamma is None else gamma)
        if not 0.0 <= self.gamma <= 1.0:
            raise ValueError(f"gamma is {self.gamma}; give a discount in [0, 1]")
        self.potential, self.success = potential, success
        self._last = LastSeen(np.zeros(1), np.zeros(1, bool))
        self._over = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and store Φ(s_0)."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._last, self._over = LastSeen(*self._known(observation, info)), False
        potential = float(self._last.potential[0])
        added = {"potential": potential, "next_potential": potential, "unshaped_reward": 0.0}
        return observation, {**info, **added}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step and shape its reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        starts = self._over  # an inner `Autoreset` wrapper has reset the environment: not a transition, so not shaped
        success = not starts and succeeded(info, self.success, ended=bool(terminated))
        frame = self._known(observation, info, bool(terminated), success)
        before, self._last = self._last.follow(*frame, self.gamma)
        if starts:
            before, self._last = frame[0], LastSeen(*frame)
        potential, next_potential = float(before[0]), float(self._last.potential[0])
        self._over = bool(terminated or truncated)
        info = {
            **info,
            "potential": potential,
            "next_potential": next_potential,
            "unshaped_reward": info.get("unshaped_reward", float(reward)),  # set if an inner wrapper shapes too
        }
        return (
            observation,
            float(reward) if starts else shaped_reward(float(reward), potential, next_potential, self.gamma),
            terminated,
            truncated,
            info,
        )

    def get_state(self) -> dict[str, Any]:
        """Return what the next reward depends on besides the environment, as plain data for a checkpoint."""
        return {"potential": self._last.potential.tolist(), "seen": self._last.seen.tolist(), "over": self._over}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state`."""
        self._last, self._over = LastSeen(np.array(state["potential"]), np.array(state["seen"])), state["over"]

    def _known(
        self, observation: Shaped[np.ndarray, "..."], info: dict[str, Any], ended: bool = False, success: bool = False
    ) -> tuple[Float[np.ndarray, "1"], Bool[np.ndarray, "1"]]:
        """Return Φ of a frame, and whether it is known; Φ of a failure is 0 and not evaluated."""
        terminal, reached = np.array([ended]), np.array([success])
        visible = puck_visible([info]) & ~terminal
        return known_potential(self._evaluate, np.asarray(observation)[None], visible, terminal, reached)

    def _evaluate(
        self, observations: Shaped[np.ndarray, "1 ..."], success: Bool[np.ndarray, "1"]
    ) -> Float[np.ndarray, "1"]:
        """Return Φ of one observation, after checking that it is one finite number."""
        value = np.asarray(self.potential(observations, success), dtype=float)
        if value.size != 1 or not np.isfinite(value).all():
            raise ValueError(
                f"potential {self.potential!r} gave {value}; it must give one finite number per observation"
            )
        return value.reshape(1)
