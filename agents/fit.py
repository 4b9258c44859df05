"""A prior for any environment, from Python."""

from pathlib import Path

import gymnasium as gym
from stable_baselines3.common.callbacks import BaseCallback

from agents.prior.calibration import calibrate
from agents.prior.config import GoalLearnerConfig
from agents.prior.learner import HIDDEN, goal_learner
from agents.prior.play import Play, Reached
from agents.prior.value_head import fit_head
from agents.progress import Meter
from agents.report.calibration import plot_calibration
from shaping.goals import GoalSet
from shaping.value import ValueEstimator


def fit_value(
    env: gym.Env,
    goals: GoalSet,
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
        env: Environment of the play, with flat observations (`gymnasium.wrappers.FlattenObservation`) or clouds and
            actions in a Box. Its reward is not used.
        goals: Goal set of its observations.
        reached: Distance within which a goal is reached, or a function of the differences achieved − desired
            (B, goal); None asks `compute_reward` of a GoalEnv.
        steps: Environment steps.
        encoder: Registered encoder.
        observation: Name of the observation in the file of the estimator.
        learner: Settings; default: those of `agents.pretrain`.
        seed: Seed of weights, exploration, goals and sampling.
        device: cpu, cuda or auto.
        episodes: Episodes of the calibration.
        plot: File for a plot of the calibration.

    Raises:
        ValueError: The environment does not fit the goal set, or the goal policy reaches no goal.
    """
    play, learner = Play(env, goals, reached), learner or GoalLearnerConfig()
    model = goal_learner(play, goals, encoder, learner, steps, seed=seed, device=device)
    with_progress = _Shown(steps)
    model.learn(steps, with_progress)
    action_dim = int(env.action_space.shape[0])  # type: ignore[index]
    estimator = ValueEstimator(
        observation, encoder, hidden=HIDDEN, action_dim=action_dim, gamma=learner.gamma, goals=goals
    )
    estimator = fit_head(model, estimator, learner.value_steps)
    found = calibrate(estimator, play, episodes)
    print(
        f"goal policy succeeds in {found.success_rate:.0%} of {episodes} episodes; rank correlation of value and steps "
        f"that remain {found.rank_correlation:.2f}; largest error against γ^n up to 15 steps {found.worst_error:.3f}"
    )
    if plot is not None:
        plot_calibration(found, plot)
    return estimator


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
