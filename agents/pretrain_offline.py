"""Pre-train Ṽ_g from recorded episodes: ``python -m agents.pretrain_offline --data FILE --obs state --out FILE``."""

import sys

import torch
import tyro

from agents.config.command_line import value_of
from agents.config.train import check_settings
from agents.methods.encoder import encoder_info
from agents.prior.calibration import Calibration, calibrate
from agents.prior.config import OfflinePretrainConfig
from agents.prior.episodes import check_episodes, hindsight_replay, load_episodes
from agents.prior.files import refuse_existing, write_prior
from agents.prior.learner import make_play
from agents.prior.offline import learn_offline
from agents.prior.value_head import to_estimator
from agents.sac.device import resolve_device
from agents.tasks import first_observation, get_task
from agents.tasks.named import register_named
from envs.command import one_line_errors
from shaping.value import ValueEstimator


def pretrain_offline(config: OfflinePretrainConfig) -> tuple[ValueEstimator, Calibration]:
    """Fit an estimator to the recorded episodes, write it, and calibrate it in the environment of the prior.

    Raises:
        FileExistsError: The estimator file exists.
        FileNotFoundError: There is no file of episodes.
        ValueError: The episodes do not fit the observation, or a number is out of range or not finite.
    """
    check_settings(config)
    refuse_existing(config.file, "--out")
    torch.set_num_threads(1)
    learner, goals, play = config.learner, config.goals, make_play(config)
    try:
        episodes = check_episodes(load_episodes(config.data, config.obs, get_task(config.task).bounds), goals)
    except ValueError as error:
        raise ValueError(f"{config.data}: {str(error).removeprefix(f'{config.data}: ')}") from error
    replay = hindsight_replay(
        episodes,
        goals,
        play.get_wrapper_attr("goal_reward"),
        play.metadata.get("render_fps", 1.0),
        goal_speed=config.goal_speed,
        elsewhere=learner.elsewhere,
        nearby=config.nearby,
        seed=config.seed,
        device=resolve_device(config.device),
    )
    encoder = encoder_info(config).name
    model = learn_offline(replay, encoder, learner, config.steps, config.seed, config.device)
    estimator = to_estimator(model, config)
    estimator.save(config.file)  # it is not lost if the goal policy reaches no goal
    try:
        return estimator, calibrate(estimator, play, config.episodes)
    except ValueError as error:
        raise ValueError(f"wrote {config.file}, not calibrated: {error}") from error


def parse(arguments: list[str] | None = None) -> OfflinePretrainConfig:
    """Parse the command line.

    Raises:
        ValueError: A task or an encoder that is named module:Name cannot be imported.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    for flag in ("--task", "--encoder"):
        register_named([value_of(arguments, flag)], flag)
    obs = [] if "--obs" in arguments else ["--obs", first_observation(value_of(arguments, "--task"))]
    return tyro.cli(OfflinePretrainConfig, args=[*obs, *arguments], prog="python -m agents.pretrain_offline")


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.pretrain_offline``."""
    config = parse(arguments)
    write_prior(*pretrain_offline(config), config)


if __name__ == "__main__":
    main()
