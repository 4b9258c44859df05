"""Maps of Φ over two numbers of a goal, for a task of any kind."""

import itertools
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agents.config import default_config
from agents.methods.demonstrations import load_trajectories, refuse_failed
from agents.methods.potential import load_estimator, make_potential
from agents.tasks import first_observation, get_task, make_env
from agents.tasks.named import register_named
from envs.files import check_replaceable
from envs.ranges import check_ranges
from perception.picture import write_picture
from perception.visualize.config import VisualizeConfig
from shaping.potential import Potential

CELLS = 61  # cells of a map along each axis
MARGIN = 0.15  # what a map shows beyond the demonstrated goals, as a share of their range


def visualize(config: VisualizeConfig) -> list[Path]:
    """Draw Φ of a task of the user, in rows of one form, and return the path of the picture.

    Raises:
        FileNotFoundError: A file is missing.
        FileExistsError: The picture exists and `overwrite` is not set.
        ValueError: A setting is invalid, or files do not fit.
    """
    check_ranges(config)
    register_named([config.task], "--task")
    out = config.out / "potential.png"
    if out.exists() and not config.overwrite:
        raise FileExistsError(f"{out}: exists already; choose another --out or --overwrite")
    check_replaceable(out)
    figure = draw_potentials(config)
    config.out.mkdir(parents=True, exist_ok=True)
    write_picture(figure, out)
    return [out]


def draw_potentials(config: VisualizeConfig) -> Figure:
    """Draw Φ in maps, in rows of one form.

    A map shows achieved − desired. The other numbers of the observation are those of the start: where it holds the
    achieved goal itself, the estimator sees that of the start everywhere.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: The goal has no such number, the files do not fit, or a demonstration does not end in success.
    """
    task = get_task(config.task)
    obs = config.obs or first_observation(config.task)
    usual = default_config("default", obs, None, task.settings)
    files: dict[str, Any] = {
        name: getattr(config, name) for name in ("estimator", "demonstrations", "filter_key", "grids")
    }
    training = replace(usual, task=config.task, **files)
    estimator, radii = load_estimator(training), config.radius or (usual.potential.radius,)
    with closing(make_env(training)) as env:
        trajectories = load_trajectories(training, env)
        refuse_failed(trajectories, training, env)
        start, _ = env.reset(seed=config.seed)
    demonstrations = [trajectory.observations[obs] for trajectory in trajectories]
    figure = Figure(figsize=(6.5 * len(radii), 5.5 * len(config.combine)), layout="constrained", dpi=110)
    places = figure.subplots(len(config.combine), len(radii), squeeze=False)
    for place, (form, radius) in zip(places.flat, itertools.product(config.combine, radii), strict=True):
        form_of = replace(training, potential=replace(usual.potential, combine=form, radius=radius))
        _draw(figure, place, make_potential(form_of, estimator, demonstrations), start, config.axes)
    return figure


def survey(
    potential: Potential, start: Float[np.ndarray, "..."], axes: tuple[int, int]
) -> tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"], Float[np.ndarray, "cells cells"]]:
    """Evaluate Φ at the start, displaced along two numbers of the goal.

    Returns:
        The two numbers, ascending (CELLS,) each, and Φ (CELLS of the first, CELLS of the second).

    Raises:
        ValueError: The goal has no such number.
    """
    goals, known = potential.goals, potential.demonstrated.goal
    if not all(0 <= axis < goals.goal_dim for axis in axes) or axes[0] == axes[1]:
        raise ValueError(f"--axes {axes[0]} {axes[1]}: a goal has the numbers 0 to {goals.goal_dim - 1}; give two")
    here = goals.extract(start[None])[0]
    shown = np.concatenate([known, here[None], np.zeros((1, goals.goal_dim), known.dtype)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    beyond = MARGIN * np.maximum(high - low, np.ptp(shown[:, axes], axis=0).max())
    first, second = (np.linspace(low[a] - beyond[a], high[a] + beyond[a], CELLS, dtype=np.float32) for a in axes)
    shift = np.zeros((CELLS, CELLS, goals.goal_dim), dtype=np.float32)
    shift[..., axes[0]] = here[axes[0]] - first[:, None]
    shift[..., axes[1]] = here[axes[1]] - second[None]
    rows = goals.substitute(start[None], shift.reshape(-1, goals.goal_dim))[0]
    return first, second, potential(rows, np.zeros(len(rows), bool)).reshape(CELLS, CELLS)


def _draw(figure: Figure, place: Axes, potential: Potential, start: np.ndarray, axes: tuple[int, int]) -> None:
    first, second, phi = survey(potential, start, axes)
    extent = (first[0], first[-1], second[0], second[-1])
    shown = place.imshow(phi.T, origin="lower", extent=extent, cmap="Greys_r", vmin=0, aspect="auto")
    figure.colorbar(shown, ax=place, label="Φ")
    known = potential.demonstrated.goal[:, axes]
    dots = place.scatter(
        known[:, 0], known[:, 1], s=8, c=potential.demonstrated.value, cmap="viridis", label="demonstrated"
    )
    figure.colorbar(dots, ax=place, label="V_d")
    place.plot(*potential.goals.extract(start[None])[0][list(axes)], "o", color="#1fb53a", label="start")
    place.plot(0, 0, "x", color="#d62728", ms=9, mew=2, label="goal")
    place.set_xlabel(f"goal number {axes[0]}: achieved − desired")
    place.set_ylabel(f"goal number {axes[1]}: achieved − desired")
    place.set_title(f"Φ: {potential.combine}, radius {potential.radius:g}")
    place.legend(loc="best", fontsize=8)
