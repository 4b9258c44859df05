"""Recorded episodes as a replay buffer with hindsight goals, and their files."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from agents.replay import HindsightReplayBuffer
from agents.tasks.actions import to_agent
from envs.demonstrations import read_demonstrations
from envs.demonstrations.dataset import renaming
from envs.demonstrations.trajectory import Bounds, check_bounds, check_rows
from envs.files import write_bytes
from shaping.goals import GoalSet

VISIBLE = "visible"  # name of the flags in a file
GoalReward = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]
"""Function from achieved and desired goals, (B, `goals.reported`) each, and info to rewards (B,): 1 at the goal."""


class Episode(NamedTuple):
    """H steps of any behaviour.

    Attributes:
        observations: Observations (H + 1, …).
        actions: Actions (H, A) in [−1, 1].
        visible: Whether an observation shows where the puck is (H + 1,); None if all do.
    """

    observations: np.ndarray
    actions: np.ndarray
    visible: np.ndarray | None = None


def check_episodes(episodes: Sequence[Any], goals: GoalSet) -> list[Episode]:
    """Return episodes as float32.

    Raises:
        ValueError: There are none, or one does not fit the goal set or the others; the message names its number.
    """
    if not len(episodes):
        raise ValueError("there are no episodes; give (observations, actions) of each")
    checked: list[Episode] = []
    for number, episode in enumerate(episodes):
        where = f"episode {number}"
        if not isinstance(episode, tuple | list) or len(episode) not in (2, 3) or episode[1] is None:
            raise ValueError(f"{where}: is no pair of observations (H + 1, …) and actions (H, A)")
        observations, actions = (np.asarray(part, np.float32) for part in episode[:2])
        if observations.shape[1:] != goals.observation_shape:
            raise ValueError(
                f"{where}: observations are of shape {observations.shape[1:]}, but the goals are for shape "
                f"{goals.observation_shape}"
            )
        size = checked[0][1].shape[1] if checked else None
        if actions.ndim != 2 or (size is not None and actions.shape[1] != size):
            raise ValueError(f"{where}: actions are of shape {actions.shape}, not (H, {'A' if size is None else size})")
        if not 0 < len(actions) == len(observations) - 1:
            raise ValueError(
                f"{where}: has {len(observations)} observations and {len(actions)} actions, not H + 1 and H"
            )
        for what, part in (("observations", observations), ("actions", actions)):
            if not np.isfinite(part).all():
                raise ValueError(f"{where}: {what} are not finite")
        if np.abs(actions).max() > 1 + 1e-6:
            raise ValueError(f"{where}: actions reach {np.abs(actions).max():g}; scale them to [-1, 1]")
        checked.append(Episode(observations, actions, *episode[2:]))
    return checked


def achieved_goals(episode: Episode, goals: GoalSet, rate: float = 1.0) -> np.ndarray:
    """Return the goals that an episode achieves (H + 1, `goals.reported`).

    Velocities that the observations do not hold are the changes since the observation before: 0 in the first, and
    infinite where the puck is not visible, so that no goal is reached there.

    Args:
        episode: Episode.
        goals: Goal set of the observations.
        rate: Observations per second.
    """
    goal = np.asarray(goals.extract(episode.observations), dtype=float)
    change = np.diff(goal, axis=0, prepend=goal[:1]) * rate
    if episode.visible is not None:
        change[~episode.visible] = np.inf
    return np.concatenate([goal, change], axis=1)[:, : goals.reported]


def hindsight_replay(
    episodes: Sequence[Episode], goals: GoalSet, compute_reward: GoalReward, rate: float = 1.0, **settings: Any
) -> HindsightReplayBuffer:
    """Return a replay buffer that holds the episodes, with hindsight goals in every row that it samples.

    Args:
        episodes: Episodes that passed `check_episodes`.
        goals: Goal set of the observations.
        compute_reward: See `GoalReward`.
        rate: Observations per second (`achieved_goals`).
        **settings: As for `HindsightReplayBuffer`.
    """
    episodes = [episode._replace(observations=np.asarray(goals.centred(episode.observations))) for episode in episodes]
    lengths = [len(episode.actions) for episode in episodes]
    count, ends = sum(lengths), np.cumsum(lengths)
    last = np.isin(np.arange(count), ends - 1)
    achieved = np.concatenate([achieved_goals(episode, goals, rate)[1:] for episode in episodes])
    rows = {
        "observations": np.concatenate([episode.observations[:-1] for episode in episodes]),
        "actions": np.concatenate([episode.actions for episode in episodes]),
        "rewards": np.zeros(count, np.float32),
        "dones": last.astype(np.float32),
        "timeouts": np.zeros(count, np.float32),
        "achieved": achieved,
        "desired": np.zeros_like(achieved),
        "episode_end": np.repeat(ends, lengths),
        "written": np.arange(count),
        "next_observations": np.stack([episode.observations[-1] for episode in episodes]),
    }
    buffer = HindsightReplayBuffer(
        count,
        gym.spaces.Box(-np.inf, np.inf, goals.observation_shape, np.float32),
        gym.spaces.Box(-1.0, 1.0, episodes[0].actions.shape[1:], np.float32),
        goals=goals,
        compute_reward=compute_reward,
        relabelled=1.0,
        **settings,
    )
    buffer.fill({name: part[:, None] for name, part in rows.items()} | {"next_observations_apart": last}, 0)
    return buffer


def recorded_episodes(buffer: HindsightReplayBuffer) -> list[Episode]:
    """Return the episodes that the replay buffer of one environment holds, in the order of their recording."""
    count = buffer.size()
    order = np.argsort(buffer.written[:count, 0])
    episodes = []
    for rows in np.split(order, np.flatnonzero(np.diff(buffer.episode_end[order, 0])) + 1):
        last = buffer.next_observations[rows[-1:], np.zeros(1, int)]
        visible = np.append(True, np.isfinite(buffer.achieved[rows, 0]).all(axis=1))
        observations = np.concatenate([buffer.observations[rows, 0], last])
        episodes.append(Episode(observations, buffer.actions[rows, 0], visible))
    return episodes


def save_episodes(path: Path, obs: str, episodes: Sequence[Episode]) -> None:
    """Write episodes to an .npz file (`envs.demonstrations.arrays`), with the flags `visible` as an observation."""
    content = io.BytesIO()
    arrays = {
        obs: np.concatenate([episode.observations for episode in episodes]),
        VISIBLE: np.concatenate([_visible(episode) for episode in episodes]).astype(np.float32),
        "actions": np.concatenate([episode.actions for episode in episodes]),
        "episode_ends": np.cumsum([len(episode.observations) for episode in episodes]),
    }
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, content.getvalue())


def load_episodes(path: Path, obs: str, bounds: Bounds | None = None) -> list[Episode]:
    """Read episodes with actions from a file of any format (`envs.demonstrations.read_demonstrations`).

    Args:
        path: The file.
        obs: Name of the observation.
        bounds: Bounds of the actions in the file, (A,) each, from which they are rescaled to [−1, 1]; None reads
            them as they are.

    Raises:
        ValueError: There is no such file, it is invalid, or it does not hold the observation, or actions within their
            bounds.
    """
    episodes = []
    for found in read_demonstrations(path):
        if obs not in found.observations or found.actions is None:
            has = ", ".join([*found.observations, *["actions"] * (found.actions is not None)])
            remedy = "" if obs in found.observations else renaming(path, obs)
            raise ValueError(
                f"{path}: {found.name or 'the episode'} lacks {obs!r} or its actions; it has {has}{remedy}"
            )
        actions = found.actions
        if bounds is not None:
            where = f"{path}: {found.name or 'the episode'}: actions"
            check_rows(actions, bounds[0].shape, where)
            check_bounds(actions, bounds, where)
            actions = to_agent(actions, bounds)
        visible = found.observations.get(VISIBLE)
        episodes.append(Episode(found.observations[obs], actions, None if visible is None else visible == 1))
    return episodes


def _visible(episode: Episode) -> np.ndarray:
    return np.ones(len(episode.observations), bool) if episode.visible is None else episode.visible
