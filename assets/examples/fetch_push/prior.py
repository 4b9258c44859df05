"""Calibrate the shipped priors of the puck in the play of FetchPush: ``python -m assets.examples.fetch_push.prior``."""

from agents.prior.calibration import calibrate
from assets.examples.fetch_push.tasks import push_around, push_around_clouds
from shaping.value import ValueEstimator

if __name__ == "__main__":
    for obs, task in {"state": push_around, "pointcloud": push_around_clouds}.items():
        path = task.view(obs).estimator
        assert path is not None and task.make_play is not None
        play = task.make_play(obs=obs)
        found = calibrate(ValueEstimator.load(path, observation=obs), play, 60)
        play.close()
        print(
            f"{obs}: goal policy succeeds in {found.success_rate:.0%} of 60 episodes; rank correlation of value and "
            f"steps that remain {found.rank_correlation:.2f}; largest error against γ^n up to 15 steps "
            f"{found.worst_error:.3f}"
        )
