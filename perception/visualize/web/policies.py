"""Policies whose episodes the page shows: the expert, the prior as a guide, and the agent of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from agents import runs
from envs.push.expert import Expert
from perception.visualize.scene import Scene
from perception.visualize.web.episode import Act, Episode, Policy
from shaping.potential import Potential
from shaping.value import ValueEstimator

Critic = Callable[[Episode], np.ndarray]
"""Returns Q of every step of an episode that has actions, shape (T,)."""


def expert(scene: Scene) -> Policy:
    """Return the hand-coded expert, which sees the simulation."""

    def begin() -> Act:
        acting = Expert(scene.base.puck_position, radius=scene.base.puck.radius)
        return lambda _: acting.act(scene.base.puck_position, scene.base.end_effector_position)

    return Policy("expert", "state", begin)


def guide(potential: Potential) -> Policy:
    """Return the prior's goal policy, aimed at the demonstrated state that Φ chooses; without one it stands still."""
    estimator = potential.estimator
    assert isinstance(estimator, ValueEstimator)

    @torch.inference_mode()
    def act(frame: dict[str, np.ndarray]) -> np.ndarray:
        aimed, known = potential.goal(frame[estimator.observation][None])
        return estimator.act(torch.from_numpy(aimed))[0].numpy() if known[0] else np.zeros(estimator.action_dim)

    return Policy(f"guide from {estimator.observation}", estimator.observation, lambda: act)


def agent(run: Path) -> tuple[Policy, Critic | None, Literal[1, 2, 3]]:
    """Return the deterministic policy of a run, its critic if the run has a checkpoint, and its number of grids.

    Raises:
        FileNotFoundError: The path is not a run directory, or there is no policy in it.
        ValueError: The run is of another task or observes something else, or its files are damaged.
    """
    policy, trained = runs.load_policy(run)
    if trained.task != "push-slot" or trained.obs not in ("state", "pointcloud"):
        raise ValueError(f"--run {run}: {trained.obs} of task {trained.task}; the page shows runs of push-slot")

    def act(frame: dict[str, np.ndarray]) -> np.ndarray:
        return policy.predict(frame[trained.obs], deterministic=True)[0]

    return Policy(f"agent {run.name}", trained.obs, lambda: act), _critic(run, trained.obs), trained.grids


def _critic(run: Path, obs: str) -> Critic | None:
    try:
        networks = runs.load_critic(run)
    except FileNotFoundError:
        return None

    @torch.inference_mode()
    def value(episode: Episode) -> np.ndarray:
        assert episode.actions is not None
        observations = torch.from_numpy(episode.observations[obs][: len(episode.actions)])
        actions = torch.from_numpy(episode.actions.astype(np.float32))
        return torch.cat(networks(observations, actions), dim=1).amin(dim=1).numpy()

    return value
