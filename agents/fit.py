"""A prior for any environment or data set, from Python."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from agents.prior.calibration import calibrate, calibrate_on
from agents.prior.config import GoalLearnerConfig, OfflineConfig
from agents.prior.episodes import Episode, GoalReward, check_episodes, hindsight_replay
from agents.prior.learner import HIDDEN, goal_learner
from agents.prior.offline import learn_offline
from agents.prior.plot import plot_calibration
from agents.prior.value_head import fit_head
from agents.progress import Meter
from agents.sac.device import resolve_device
from agents.tasks.actions import check_actions
from envs.files import check_replaceable
from envs.ranges import COUNT, check_range, check_ranges
from shaping.goals import GoalSet, dict_goals
from shaping.success.play import Play
from shaping.success.reached import Reached, goal_reward, goal_test
from shaping.value import ValueEstimator


def fit_value(
    env: gym.Env,
    goals: GoalSet | None = None,
    *,
    reached: Reached | None = None,
    steps: int = 50_000,
    encoder: str = "identity",
    observation: str = "state",
    learner: GoalLearnerConfig | None = None,
    seed: int = 0,
    device: str = "auto",
    episodes: int = 100,
    plot: Path | None = None,
) -> ValueEstimator:
    """Learn a goal policy and its value Ṽ_g(s; g) = γ^steps by play, and print how well the value is calibrated.

    The learner is SAC with hindsight goals, as in `python -m agents.pretrain`. The environment should be free of what
    makes the task long, such as obstacles, and its goals should vary.

    Args:
        env: Environment of the play, with flat observations or clouds, or a GoalEnv, whose observations are flattened,
            and actions in a Box. Its reward is not used.
        goals: Goal set of its observations; default: `dict_goals` of a GoalEnv.
        reached: Distance within which a goal is reached, or a function of the differences achieved − desired
            (B, goal); None asks `compute_reward` of a GoalEnv.
        steps: Environment steps.
        encoder: Registered encoder.
        observation: Name of the observation in the file of the estimator.
        learner: Settings; default: those of `agents.pretrain`. `goal_speed` bounds the velocities of hindsight goals,
            `nearby` is a share of goals within 0.25 of the achieved one, which clouds need; `success_speed` is not
            used.
        seed: Seed of weights, exploration, goals and sampling.
        device: cpu, cuda or auto.
        episodes: Episodes of the calibration.
        plot: File for a plot of the calibration.

    Raises:
        ValueError: The environment does not fit the goal set, or an argument is out of range.
        OSError: The plot could not be written.
    """
    learner = learner or GoalLearnerConfig()
    if isinstance(env.observation_space, gym.spaces.Dict):
        goals = goals or dict_goals(env.observation_space)
        env = gym.wrappers.FlattenObservation(env)
    _check(env, goals, learner, steps, episodes, plot)
    assert goals is not None
    play, action_dim = Play(env, goals, reached), int(env.action_space.shape[0])  # type: ignore[index]
    estimator = ValueEstimator(
        observation, encoder, hidden=HIDDEN, action_dim=action_dim, gamma=learner.gamma, goals=goals
    )
    model = goal_learner(play, goals, encoder, learner, steps, learner.goal_speed, learner.nearby or 0.0, seed, device)
    model.learn(steps, _Shown(steps))
    estimator = fit_head(model, estimator, learner.value_steps)
    _calibrate(estimator, play, episodes, plot)
    return estimator


def fit_value_offline(
    episodes: Sequence[Any],
    goals: GoalSet,
    *,
    reached: Reached | None = None,
    env: gym.Env | None = None,
    steps: int = 20_000,
    encoder: str = "identity",
    observation: str = "state",
    learner: OfflineConfig | None = None,
    seed: int = 0,
    device: str = "auto",
    trials: int = 100,
    plot: Path | None = None,
) -> ValueEstimator:
    """Learn Ṽ_g(s; g) = γ^steps and a goal policy from recorded episodes, and print how well the value is calibrated.

    The learner is SAC with hindsight goals that stays near the recorded actions (`agents.prior.offline`). The episodes
    may pursue any goal or none, and the steps to a goal may be put together from several of them.

    Args:
        episodes: Observations (H + 1, …) and actions (H, A) in [−1, 1] of each episode.
        goals: Goal set of the observations.
        reached: Distance within which a goal is reached, or a function of the differences achieved − desired
            (B, goal); None asks `compute_reward` of `env`, a GoalEnv.
        env: Environment for the calibration, as for `fit_value`. None calibrates on a tenth of the episodes, which is
            then left out of the training.
        steps: Gradient steps.
        encoder: Registered encoder.
        observation: Name of the observation in the file of the estimator.
        learner: Settings; `goal_speed` bounds the velocities of hindsight goals, `nearby` is a share of goals within
            0.25 of the achieved one, which clouds need.
        seed: Seed of weights, goals and sampling.
        device: cpu, cuda or auto.
        trials: Episodes of the calibration in `env`.
        plot: File for a plot of the calibration.

    Raises:
        ValueError: The episodes do not fit the goal set, nothing tells when a goal is reached, or an argument is out
            of range.
        OSError: The plot could not be written.
    """
    learner = learner or OfflineConfig()
    _check_common(goals, learner, plot)
    check_range("steps", steps, COUNT)
    check_range("trials", trials, COUNT)
    data = check_episodes(episodes, goals)
    play = None if env is None else Play(env, goals, reached)
    reward = partial(goal_reward, goals, goal_test(goals, reached, env)) if play is None else play.goal_reward
    held_out: list[Episode] = []
    if play is None:
        shuffled = np.random.default_rng(seed).permutation(len(data))
        held_out, data = ([data[i] for i in part] for part in np.split(shuffled, [len(data) // 10]))
    estimator = ValueEstimator(
        observation, encoder, hidden=HIDDEN, action_dim=data[0].actions.shape[1], gamma=learner.gamma, goals=goals
    )
    replay = hindsight_replay(
        data,
        goals,
        reward,
        goal_speed=learner.goal_speed,
        elsewhere=learner.elsewhere,
        nearby=learner.nearby or 0.0,
        seed=seed,
        device=resolve_device(device),
    )
    model = learn_offline(replay, encoder, learner, steps, seed, device)
    estimator = fit_head(model, estimator, learner.value_steps)
    if play is None:
        _calibrate_on(held_out, estimator, reward, learner.goal_speed, plot)
    else:
        _calibrate(estimator, play, trials, plot)
    return estimator


def _check(
    env: gym.Env, goals: GoalSet | None, learner: GoalLearnerConfig, steps: int, episodes: int, plot: Path | None
) -> None:
    """Check the arguments before the training, which takes minutes."""
    _check_common(goals, learner, plot)
    check_actions(env.action_space)
    check_range("episodes", episodes, COUNT)
    if steps <= learner.learning_starts:
        raise ValueError(f"steps is {steps}; give more than learner.learning_starts, {learner.learning_starts}")


def _check_common(goals: GoalSet | None, learner: Any, plot: Path | None) -> None:
    if not isinstance(goals, GoalSet):
        raise ValueError(f"goals are {goals!r}; give a goal set, such as BoxGoals")
    check_ranges(learner, "learner.")
    if plot is not None:
        check_replaceable(Path(plot))
        if not Path(plot).absolute().parent.is_dir():
            raise FileNotFoundError(f"{Path(plot).parent}: no such directory for plot=")


def _calibrate(estimator: ValueEstimator, play: Play, episodes: int, plot: Path | None) -> None:
    """Print, and plot, how well the value predicts the steps of the goal policy."""
    try:
        found = calibrate(estimator, play, episodes)
    except ValueError as error:  # the estimator is not lost
        print(f"the estimator is not calibrated: {error}")
        return
    print(
        f"goal policy succeeds in {found.success_rate:.0%} of {episodes} episodes; rank correlation of value and steps "
        f"that remain {found.rank_correlation:.2f}; largest error against γ^n up to 15 steps {found.worst_error:.3f}"
    )
    if plot is not None:
        plot_calibration(found, Path(plot))


def _calibrate_on(
    episodes: list[Episode], estimator: ValueEstimator, reward: GoalReward, goal_speed: float, plot: Path | None
) -> None:
    """Print, and plot, how well the value predicts the steps of recorded episodes."""
    try:
        found = calibrate_on(episodes, estimator, reward, goal_speed)
    except ValueError as error:  # the estimator is not lost
        print(f"the estimator is not calibrated: {error}")
        return
    print(
        f"rank correlation of value and steps that remain {found.rank_correlation:.2f} along held-out episodes, "
        f"{found.success_rate:.0%} of {len(episodes)} that go to where they end"
    )
    if plot is not None:
        plot_calibration(found, Path(plot))


class _Shown(BaseCallback):
    """Show the progress."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.meter = Meter("prior", "step", steps)

    def _on_step(self) -> bool:
        self.meter.reach(self.num_timesteps)
        return True

    def _on_training_end(self) -> None:
        self.meter.close()
