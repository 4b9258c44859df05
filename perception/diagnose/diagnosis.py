"""The command `perception.diagnose`: play a policy, observe its frames by every view, measure, and report."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import gymnasium
import mujoco
import numpy as np
import torch
from torch import nn

from agents.runs import load_policy
from agents.tasks import get_task, make_env
from agents.tasks.named import register_named
from envs.files import check_replaceable, write_text
from envs.push.env import PushEnv
from envs.push.make import SUCCESS_SPEEDS
from envs.ranges import check_ranges
from perception.cameras import find_id
from perception.diagnose.advice import advise
from perception.diagnose.config import DiagnoseConfig
from perception.diagnose.episodes import Policy, expert, frames_of, learned, play, uniform
from perception.diagnose.findings import Findings, Measured, measure, sum_up
from perception.diagnose.picture import draw_diagnosis
from perception.diagnose.probe import features, load_encoder, recovered
from perception.diagnose.report import findings_table
from perception.diagnose.sight import observe, survey
from perception.noise import Noise, checked_noise
from perception.picture import write_picture
from perception.rendering import RENDERERS

TASK = "push-slot"


def diagnose(config: DiagnoseConfig) -> tuple[list[Findings], str, list[Path]]:
    """Measure the views of a configuration, and write picture and table.

    Returns:
        Findings of each camera and, with several, of all fused; the advice, on the last of them; the written files.

    Raises:
        FileNotFoundError: A file or the run is missing.
        FileExistsError: An output file exists and `overwrite` is not set.
        ValueError: A setting is invalid, or files do not fit.
        GraphicsError: The renderer needs OpenGL, and it is missing.
    """
    torch.set_num_threads(1)  # faster for small batches
    noise = check(config)
    picture, page = out = [config.out / "diagnosis.png", config.out / "diagnosis.md"]
    present = [str(path) for path in out if path.exists()]
    if present and not config.overwrite:
        raise FileExistsError(f"{', '.join(present)}: exists already; choose another --out or --overwrite")
    for path in out:
        check_replaceable(path)
    above = next(path for path in (config.out, *config.out.absolute().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):  # found before the episodes are played
        raise OSError(f"--out {config.out}: {above} is no directory to write to; choose another")
    measured = list(_measured(config, noise))
    findings = [sum_up(view) for view in measured]
    advice = advise(findings[-1], noise)
    config.out.mkdir(parents=True, exist_ok=True)
    write_picture(draw_diagnosis(measured, findings, advice), picture)
    write_text(
        page, f"{advice}\n\n{_conditions(config, noise, len(measured[0].episode))}\n\n{findings_table(findings)}\n"
    )
    return findings, advice, out


def check(config: DiagnoseConfig) -> Noise:
    """Check the settings that the type annotations do not restrict, and return the noise.

    Raises:
        ValueError: A setting is out of range or unknown, or two of them exclude each other.
    """
    check_ranges(config)
    if config.renderer not in RENDERERS:
        raise ValueError(f"--renderer: unknown renderer {config.renderer!r}; known: {', '.join(RENDERERS)}")
    if not config.cameras or len(set(config.cameras)) < len(config.cameras):
        raise ValueError(f"--cameras is {' '.join(config.cameras)!r}; name at least one, each of them once")
    for one, other in (("run", "policy"), ("estimator", "encoder")):
        if None not in (getattr(config, one), getattr(config, other)):
            raise ValueError(f"--{one} and --{other} exclude each other; leave one of them out")
    position, rotation = config.extrinsics_noise
    try:
        return checked_noise(Noise(config.depth_noise, config.dropped, position, rotation))
    except ValueError as error:  # the other numbers have been checked
        raise ValueError(f"--extrinsics-noise: {str(error).removeprefix('noise: ')}") from error


def _measured(config: DiagnoseConfig, noise: Noise) -> Iterator[Measured]:
    """Play the episodes and yield the measurements of each view."""
    register_named([config.encoder], "--encoder")
    register_named(config.imports, "--imports")
    env, policy = _player(config)
    base: Any = env.unwrapped
    with closing(env):
        for camera in config.cameras:
            try:
                find_id(base.model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
            except ValueError as error:
                raise ValueError(f"--cameras: {error}") from error
        encoder = _encoder(config)
        print(f"playing {config.episodes} episodes of {_who(config)}", flush=True)
        trajectories = play(env, policy, config.episodes, config.seed)
        frames = frames_of(base, trajectories)
        surfaces = {camera: survey(base, trajectories, camera, config.renderer) for camera in config.cameras}
        fused = [config.cameras] if len(config.cameras) > 1 else []
        for cameras in [*((camera,) for camera in config.cameras), *fused]:
            print(f"measuring {len(frames.episode)} frames of {' + '.join(cameras)}", flush=True)
            clouds = observe(base, trajectories, cameras, config.renderer)
            pose = replace(noise, depth=0.0, dropped=0.0)  # with the same errors, since they are drawn alike
            noisy, miscalibrated = (
                observe(base, trajectories, cameras, config.renderer, one, config.seed) for one in (noise, pose)
            )
            kept = recovered(features(encoder, clouds.observations), frames.state, frames.episode)
            facing = [surfaces[camera] for camera in cameras]
            yield measure(cameras, frames, clouds, noisy, miscalibrated, facing, kept)


def _encoder(config: DiagnoseConfig) -> nn.Module:
    view = get_task(TASK).view("pointcloud")
    estimator = config.estimator or view.estimator
    assert estimator is not None
    return load_encoder(estimator, config.encoder, view.space.shape, config.seed)


def _player(config: DiagnoseConfig) -> tuple[gymnasium.Env, Policy]:
    """Return the environment that is played, and by whom."""
    if config.run is not None:
        agent, trained = load_policy(config.run)
        if trained.task != TASK:
            raise ValueError(f"--run {config.run}: trained on {trained.task}; the diagnosis is of {TASK}")
        return make_env(replace(trained, grids=config.grids or trained.grids)), learned(agent)
    # An episode ends at the success of clouds.
    env = PushEnv(TASK, grids=config.grids or 1, success_speed=SUCCESS_SPEEDS["pointcloud"])
    return env, uniform(np.random.default_rng(config.seed)) if config.policy == "random" else expert


def _who(config: DiagnoseConfig) -> str:
    if config.run is not None:
        return f"the agent {config.run}"
    return "random actions" if config.policy == "random" else "the expert"


def _conditions(config: DiagnoseConfig, noise: Noise, frames: int) -> str:
    return (
        f"{config.episodes} episodes ({frames} frames) of {_who(config)}. Noise: {1000 * noise.depth:g} mm of depth at "
        f"1 m, {noise.dropped:.0%} of the pixels dropped, calibration errors of {1000 * noise.position:g} mm and "
        f"{noise.rotation:g}° per axis; rows that do not name noise are measured without it."
    )
