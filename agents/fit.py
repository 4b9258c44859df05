"""A prior for any environment, from Python."""

from pathlib import Path

import gymnasium as gym
from stable_baselines3.common.callbacks import BaseCallback

from agents.prior.calibration import calibrate
from agents.prior.config import GoalLearnerConfig
from agents.prior.learner import HIDDEN, goal_learner
from agents.prior.value_head import fit_head
from agents.progress import Meter
from agents.report.calibration import plot_calibration
from envs.files import check_replaceable
from envs.ranges import COUNT, check_range, check_ranges
from shaping.goals import GoalSet, dict_goals
from shaping.success.play import Play, Reached
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
    try:
        found = calibrate(estimator, play, episodes)
    except ValueError as error:  # the estimator is not lost
        print(f"the estimator is not calibrated: {error}")
        return estimator
    print(
        f"goal policy succeeds in {found.success_rate:.0%} of {episodes} episodes; rank correlation of value and steps "
        f"that remain {found.rank_correlation:.2f}; largest error against γ^n up to 15 steps {found.worst_error:.3f}"
    )
    if plot is not None:
        plot_calibration(found, Path(plot))
    return estimator


def _check(
    env: gym.Env, goals: GoalSet | None, learner: GoalLearnerConfig, steps: int, episodes: int, plot: Path | None
) -> None:
    """Check the arguments before the training, which takes minutes."""
    if not isinstance(goals, GoalSet):
        raise ValueError(f"goals are {goals!r}; give a goal set, such as BoxGoals")
    space = env.action_space
    if not (isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.is_bounded()):
        raise ValueError(f"actions are {space}; the goal policy needs a bounded Box of one axis")
    check_ranges(learner, "learner.")
    check_range("episodes", episodes, COUNT)
    if steps <= learner.learning_starts:
        raise ValueError(f"steps is {steps}; give more than learner.learning_starts, {learner.learning_starts}")
    if plot is not None:
        check_replaceable(Path(plot))
        if not Path(plot).absolute().parent.is_dir():
            raise FileNotFoundError(f"{Path(plot).parent}: no such directory for plot=")


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
