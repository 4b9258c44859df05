"""Benchmark stages of an environment step and of Φ, for the project and, where it has them, the stock stack."""

import dataclasses
import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import envs.simulator  # noqa: F401 (first: it imports MuJoCo even if rendering is not available)

# isort: split
import gymnasium as gym
import mujoco
import numpy as np
import torch

from agents.benchmark.stock import CAMERA, StockPush
from agents.benchmark.timing import Timer, Work
from agents.config.presets import PAPER
from agents.config.train import TrainConfig
from agents.methods.demonstrations import load_trajectories
from agents.methods.potential import load_estimator, make_potential
from agents.sac.device import available_precisions, resolve_device, resolve_precision
from agents.tasks import get_task
from perception.cameras import camera_to_world
from perception.observation import WORKSPACE
from perception.point_cloud import back_project, crop, sample_points, transform
from perception.rendering import make_renderer
from shaping.potential import Potential

OBSERVATIONS: dict[str, str] = {"state": "states", "pointcloud": "clouds"}
SUBSTEPS = 25
BUFFER = 100_000  # transitions in the replay buffers, more than fit in a CPU cache
IMAGE_SIZE = 128  # width and height of the project's images [pixels]
IMAGES = 4  # number of images that the cloud stage cycles through
DEMONSTRATIONS = 100


@dataclass(frozen=True)
class Settings:
    """Settings of the measurement.

    Attributes:
        timer: Timer of all stages.
        renderer: Renderer of the project.
        precision: Number format of the project's learner.
    """

    timer: Timer
    renderer: str
    precision: Any

    @property
    def other_precision(self) -> str | None:
        """The other number format that the device supports, if there is one."""
        device = resolve_device(self.timer.device)
        chosen = resolve_precision(self.precision, device)
        return next((name for name in available_precisions(device) if getattr(torch, name) != chosen), None)

    def config(self, obs: str, encoder_training: Any = "scratch", precision: str | None = None) -> TrainConfig:
        """Return the paper's configuration with gradient steps from the first environment step on."""
        precision = self.precision if precision is None else precision
        changed = {"precision": precision, "encoder_training": encoder_training, "learning_starts": 0}
        learner = dataclasses.replace(PAPER.learner, **changed)
        device: Any = self.timer.device
        return dataclasses.replace(
            PAPER, obs=obs, steps=BUFFER, device=device, threads=self.timer.threads, learner=learner
        )

    def env(self, obs: str) -> gym.Env:
        """Make the environment of the slot task."""
        perception = {"renderer": self.renderer} if obs == "pointcloud" else None
        return get_task("push-slot").make(obs=obs, perception=perception)


@dataclass(frozen=True)
class Stage:
    """Stage that is timed for the project and the stock stack.

    Attributes:
        name: Key in the results.
        label: Name in the table.
        works: Calls to time by "project" and, if the stock stack has the stage, "stock".
        part_of: Observation of the training step that contains the stage, if any.
        times: Calls per training step.
    """

    name: str
    label: str
    works: dict[str, Work]
    part_of: str | None = None
    times: float = 1.0


def environment_stages(settings: Settings) -> Iterator[Stage]:
    """Yield the stages of physics, steps, resets, images and clouds."""
    timer = settings.timer
    env, stock = settings.env("state"), StockPush(clouds=False)
    horizon = env.unwrapped.horizon  # type: ignore[attr-defined]
    yield Stage("physics", "physics alone", {"project": timer.steps(env, _physics(env, timer))}, "state")
    yield Stage("state_step", "state step", {"project": timer.steps(env), "stock": timer.steps(stock)}, "state")
    resets = {"project": timer.timed(env.reset), "stock": timer.timed(stock.reset)}
    yield Stage("reset", "reset", resets, "state", 1 / horizon)
    stock.robosuite.hard_reset = False
    yield Stage("soft_reset", "reset, model kept", {"stock": timer.timed(stock.reset)})
    env.close()
    stock.close()

    env, stock = settings.env("pointcloud"), StockPush(clouds=True)
    model, data = env.unwrapped.model, env.unwrapped.data  # type: ignore[attr-defined]
    renderer = make_renderer(settings.renderer, model, CAMERA, width=IMAGE_SIZE, height=IMAGE_SIZE)
    images = {
        "project": timer.steps(env, timer.timed(lambda: renderer.render(data))),
        "stock": timer.steps(stock, timer.timed(lambda: stock.depth_and_mask(*stock.render()))),
    }
    yield Stage("depth_and_mask", "depth and mask", images, "pointcloud")
    yield Stage("cloud", "20 points of them", _clouds(env, stock, renderer, timer), "pointcloud")
    works = {"project": timer.steps(env), "stock": timer.steps(stock)}
    yield Stage("pointcloud_step", "point-cloud step", works, "pointcloud")
    resets = {"project": timer.timed(env.reset), "stock": timer.timed(stock.reset)}
    yield Stage("pointcloud_reset", "point-cloud reset", resets, "pointcloud", 1 / horizon)
    renderer.close()
    env.close()
    stock.close()


def potential_stages(settings: Settings) -> Iterator[Stage]:
    """Yield the stages of Φ for a single observation, as in training, with one and with many demonstrations."""
    for obs, noun in OBSERVATIONS.items():
        config = settings.config(obs)
        with closing(settings.env(obs)) as env:
            shown = load_trajectories(config, env)[0].observations[obs]
        estimator = load_estimator(config)
        seen = np.concatenate(vary(shown, 8, seed=1))
        for demonstrations in ([shown], vary(shown, DEMONSTRATIONS)):
            potential = make_potential(config, estimator, demonstrations)
            count = len(demonstrations)
            label = f"Φ, {noun}, {count} demonstration{'s' if count > 1 else ''}"
            works = {"project": _potential(potential, seen, settings.timer)}
            yield Stage(f"potential_{obs}_{count}", label, works, obs if count == 1 else None)


def vary(shown: np.ndarray, count: int, seed: int = 0) -> list[np.ndarray]:
    """Make variations of a demonstration, which start up to 15 steps later.

    The puck is displaced by up to 2 cm at the start; the displacement falls linearly to 0 at the end.
    """
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        varied = shown[rng.integers(16) :].copy()
        aside = np.linspace(1.0, 0.0, len(varied))[:, None] * rng.uniform(-0.02, 0.02, 2)
        if varied.ndim == 2:
            varied[:, 4:6] += aside
        else:
            varied[..., 2:] += aside[:, None]
        made.append(varied)
    return made


def _physics(env: gym.Env, timer: Timer) -> Work:
    """Measure MuJoCo's steps from the states of an episode, with constant torques."""
    model, data = env.unwrapped.model, env.unwrapped.data  # type: ignore[attr-defined]
    copy = mujoco.MjData(model)
    stepped = timer.timed(lambda: mujoco.mj_step(model, copy, SUBSTEPS))

    def work() -> float:
        mujoco.mj_copyData(copy, model, data)
        return stepped()

    return work


def _clouds(env: gym.Env, stock: StockPush, renderer: Any, timer: Timer) -> dict[str, Work]:
    """Measure the computation of clouds from images that are rendered beforehand and show the puck."""
    model, data = env.unwrapped.model, env.unwrapped.data  # type: ignore[attr-defined]
    images: list[tuple[Any, Any]] = []
    while len(images) < IMAGES:
        env.reset()
        stock.reset()
        pair = renderer.render(data), stock.depth_and_mask(*stock.render())
        if all(mask.any() for _, mask in pair):
            images.append(pair)
    pose, box = camera_to_world(model, data, CAMERA), np.asarray(WORKSPACE)
    ours, theirs = (itertools.cycle(side) for side in zip(*images, strict=True))

    def sample() -> None:
        depth, mask = next(ours)
        sample_points(crop(transform(back_project(depth, mask, renderer.intrinsics), pose), box), 20)

    return {"project": timer.timed(sample), "stock": timer.timed(lambda: stock.cloud(*next(theirs)))}


def _potential(potential: Potential, seen: np.ndarray, timer: Timer) -> Work:
    order = itertools.cycle(np.random.default_rng(0).permutation(len(seen)))

    def one() -> None:
        index = next(order)
        potential(seen[index : index + 1])

    return timer.timed(one)
