"""The slot task under conditions that an agent was not trained in: noise, a camera that was moved, another puck."""

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium as gym

from agents.config import TrainConfig
from agents.evaluation.episodes import Evaluation, evaluate
from agents.progress import say
from agents.tasks import make_env
from envs.push.geometry import PUCK
from perception.cameras import turn_camera
from perception.noise import Noise
from perception.simulation import simulation

TASK, CAMERA = "push-slot", "overhead"  # the task, and the camera of its clouds by default


@dataclass(frozen=True)
class Condition:
    """A change of the slot task.

    Attributes:
        name: Description, with units.
        noise: Noise of the camera; None for none.
        turn: Angle by which the camera is turned around the table; its new pose is known [degrees].
        half_width: Half width of the puck [m].
    """

    name: str
    noise: Noise | None = None
    turn: float = 0.0
    half_width: float = PUCK.half_width


UNCHANGED = Condition("nothing changed")
PUCKS = tuple(Condition(f"puck of radius {1000 * r:.0f} mm", half_width=r) for r in (0.02, 0.04))
VIEWS = (
    *(Condition(f"depth noise of {1000 * d:g} mm at 1 m", Noise(depth=d)) for d in (0.0015, 0.005, 0.02)),
    *(Condition(f"{100 * share:.0f} % of the pixels dropped", Noise(dropped=share)) for share in (0.5, 0.9)),
    *(
        Condition(f"calibration error of {1000 * p:.0f} mm and {r:g}° per axis", Noise(position=p, rotation=r))
        for p, r in ((0.002, 0.2), (0.005, 0.5))
    ),
    *(Condition(f"camera turned by {a:.0f}° around the table, pose known", turn=a) for a in (10.0, 30.0)),
)
CONDITIONS = {"state": (UNCHANGED, *PUCKS), "pointcloud": (UNCHANGED, *VIEWS, *PUCKS)}
"""Conditions by observation; a state depends on the puck alone."""


def make_changed_env(trained: TrainConfig, condition: Condition) -> gym.Env:
    """Make the environment of a training under a condition."""
    settings: dict[str, Any] = {"puck": {"half_width": condition.half_width}}
    if condition.noise is not None:
        settings["perception"] = {"noise": asdict(condition.noise)}
    env = make_env(trained, **settings)
    if condition.turn:
        turn_camera(simulation(env)[0], CAMERA, condition.turn)
    return env


def check_robustness(trained: TrainConfig) -> None:
    """Check that there are conditions for the task and the observation of a training.

    Raises:
        ValueError: It is another task, or an observation without conditions.
    """
    if trained.task != TASK:
        raise ValueError(
            f"--robustness changes camera and puck of {TASK}, and this run is of {trained.task}; leave it out"
        )
    if trained.obs not in CONDITIONS:
        raise ValueError(
            f"--robustness has conditions for {' and '.join(CONDITIONS)}, and this run observes {trained.obs}; "
            "leave it out"
        )


def evaluate_robustness(policy: Any, trained: TrainConfig, episodes: int, seed: int) -> dict[str, Evaluation]:
    """Evaluate a policy under every condition that concerns its observation, from the same initial states.

    The puck is placed at the same positions whatever its size.

    Args:
        policy: Object with the method `predict` of Stable-Baselines3.
        trained: Configuration of its training.
        episodes: Episodes per condition.
        seed: Seed of the first episode.

    Returns:
        Evaluations by the name of the condition, the first with nothing changed.
    """
    results = {}
    for condition in CONDITIONS[trained.obs]:
        say(condition.name)
        with contextlib.closing(make_changed_env(trained, condition)) as env:
            results[condition.name] = evaluate(policy, env, episodes, seed)
    return results


def robustness_table(results: Mapping[str, Evaluation]) -> str:
    """Format evaluations under conditions in Markdown, with the steps of the successful episodes."""
    lines = ["| condition | success [95 % interval] | steps to the goal |", "|---|---|---|"]
    for name, result in results.items():
        low, high = result.interval
        steps = "-" if result.mean_steps is None else f"{result.mean_steps:.1f}"
        lines.append(f"| {name} | {result.success_rate:.0%} [{low:.0%}, {high:.0%}] | {steps} |")
    return "\n".join(lines)
