"""Shaped rewards for any Gymnasium environment and any algorithm.

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

Your own potential is a function of a batch of observations (batch, ...) and success flags (batch,):

    def potential(observations, success):
        return numpy.where(success, 1.0, numpy.exp(-abs(observations[:, 0])))

Your task should end an episode with `terminated` only where nothing can follow, and cut it at a time limit
with `truncated`. It says by `info["is_success"]` whether a step reached the goal set; of one that says it otherwise,
`success=` names the key of `info`, or is a function of `info`.
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

    - in the goal set (`success` says so): Φ's own constant there, also where the episode goes on, for a Φ
      that is a function of the state alone keeps the optimal policies;
    - terminated otherwise: 0, so that no potential can make failing attractive;
    - `truncated`, or not ended: the ordinary Φ(s′). A time limit is not an end; bootstrap from s′.

    A start counts as outside the goal set. A frame that does not show the puck (`info["puck_visible"]` is False)
    repeats the Φ last seen in the episode; before the first sight, and with it, nothing is shaped (see
    `shaping.visibility`).

    `info` gains "potential" Φ(s), "next_potential" Φ(s′) and "unshaped_reward" r; after a reset s′ is s, and r is 0.

    ``gymnasium.make(env.spec)`` makes another one with the same potential. As with every function that Gymnasium's
    wrappers take, JSON cannot hold it: ``env.spec.to_json()`` raises a TypeError.

    Args:
        env: environment with a Box observation space that the potential understands.
        potential: maps observations (batch, *shape) and success flags (batch,) to potentials (batch,).
        gamma: the task's discount γ; the potential's own by default, and 0.99 if it has none.
        success: how the task says that a step reached the goal set: a key of `info`, or a function of it.

    Raises:
        ValueError: the observation space is not a Box, γ is outside [0, 1], Φ is not one finite number, or an
            episode terminates and nothing says whether it succeeded.
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
        """Start an episode and remember Φ(s_0)."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._last, self._over = LastSeen(*self._known(observation, info)), False
        potential = float(self._last.potential[0])
        added = {"potential": potential, "next_potential": potential, "unshaped_reward": 0.0}
        return observation, {**info, **added}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step and shape its reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        starts = self._over  # by an `Autoreset` below: no transition, so nothing to shape
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
            "unshaped_reward": info.get("unshaped_reward", float(reward)),  # of another shaping below
        }
        return (
            observation,
            float(reward) if starts else shaped_reward(float(reward), potential, next_potential, self.gamma),
            terminated,
            truncated,
            info,
        )

    def get_state(self) -> dict[str, Any]:
        """What the next reward depends on beside the environment, as plain data for a checkpoint."""
        return {"potential": self._last.potential.tolist(), "seen": self._last.seen.tolist(), "over": self._over}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""
        self._last, self._over = LastSeen(np.array(state["potential"]), np.array(state["seen"])), state["over"]

    def _known(
        self, observation: Shaped[np.ndarray, "..."], info: dict[str, Any], ended: bool = False, success: bool = False
    ) -> tuple[Float[np.ndarray, "1"], Bool[np.ndarray, "1"]]:
        """Return Φ of a frame if it is known, and whether it is; that of a failure is not evaluated."""
        terminal, reached = np.array([ended]), np.array([success])
        visible = puck_visible([info]) & ~terminal
        return known_potential(self._evaluate, np.asarray(observation)[None], visible, terminal, reached)

    def _evaluate(
        self, observations: Shaped[np.ndarray, "1 ..."], success: Bool[np.ndarray, "1"]
    ) -> Float[np.ndarray, "1"]:
        """Return Φ of one observation, checked."""
        value = np.asarray(self.potential(observations, success), dtype=float)
        if value.size != 1 or not np.isfinite(value).all():
            raise ValueError(
                f"potential {self.potential!r} gave {value}; it must give one finite number per observation"
            )
        return value.reshape(1)
