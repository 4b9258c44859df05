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

from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from jaxtyping import Float

from shaping.reward import shaped_reward
from shaping.success import IS_SUCCESS, Success, succeeded

PotentialFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


class PotentialShaping(gymnasium.Wrapper):
    """Replace the reward r of an environment by r̄ = r + γ Φ(s′) − Φ(s).

    Φ is evaluated once per step: Φ(s′) of a step is Φ(s) of the next. Φ(s′) depends on how the step ended:

    - in the goal set (`success` says so): Φ's own constant there, also where the episode goes on, for a Φ
      that is a function of the state alone keeps the optimal policies;
    - terminated otherwise: 0, so that no potential can make failing attractive;
    - `truncated`, or not ended: the ordinary Φ(s′). A time limit is not an end; bootstrap from s′.

    A start counts as outside the goal set.

    `info` gains "potential" Φ(s), "next_potential" Φ(s′) and "unshaped_reward" r; after a reset, "potential".

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
        super().__init__(env)
        if not isinstance(env.observation_space, gymnasium.spaces.Box):
            raise ValueError(f"observation space is {env.observation_space}; potential shaping needs a Box")
        self.gamma = float(getattr(potential, "gamma", 0.99) if gamma is None else gamma)
        if not 0.0 <= self.gamma <= 1.0:
            raise ValueError(f"gamma is {self.gamma}; give a discount in [0, 1]")
        self.potential, self.success = potential, success
        self._potential = 0.0
        self._over = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode and remember Φ(s_0)."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._potential, self._over = self._evaluate(observation, success=False), False
        return observation, {**info, "potential": self._potential}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step and shape its reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        starts = self._over  # by an `Autoreset` below: no transition, so nothing to shape
        success = not starts and succeeded(info, self.success, ended=bool(terminated))
        failure = terminated and not success
        potential, next_potential = self._potential, 0.0 if failure else self._evaluate(observation, success)
        self._potential, self._over = next_potential, bool(terminated or truncated)
        info = {
            **info,
            "potential": next_potential if starts else potential,
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

    def _evaluate(self, observation: Float[np.ndarray, "..."], success: bool) -> float:
        """Return Φ of one observation."""
        value = np.asarray(self.potential(np.asarray(observation)[None], np.array([success])))
        if value.size != 1 or not np.isfinite(value).all():
            raise ValueError(
                f"potential {self.potential!r} gave {value}; it must give one finite number per observation"
            )
        return float(value.reshape(()))
