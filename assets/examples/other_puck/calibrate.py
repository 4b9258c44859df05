"""Calibrate the shipped estimators in the plane with each puck: ``python -m assets.examples.other_puck.calibrate``."""

from contextlib import closing

from agents.prior.calibration import calibrate
from agents.prior.config import PretrainConfig
from agents.tasks import get_task
from agents.tasks.push import make_plane
from assets.examples.other_puck.tasks import PUCKS
from envs.push.geometry import PUCK
from shaping.value import ValueEstimator


def main() -> None:
    print("| puck | observation | success of the goal policy | rank correlation | largest error up to 15 steps |")
    print("|---|---|---|---|---|")
    for obs in ("state", "pointcloud"):
        config = PretrainConfig(obs)
        file = get_task(config.task).view(obs).estimator
        assert file is not None
        estimator, speed = ValueEstimator.load(file), config.learner.success_speed
        for name, puck in ({"default": PUCK} | PUCKS).items():
            with closing(make_plane(obs, puck=puck, success_speed=speed, goal_speed=config.goal_speed)) as env:
                found = calibrate(estimator, env, config.episodes)
            errors = f"{found.rank_correlation:.2f} | {found.worst_error:.3f}"
            print(f"| {name} | {obs} | {found.success_rate:.1%} | {errors} |", flush=True)


if __name__ == "__main__":
    main()
