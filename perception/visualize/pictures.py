"""The command `perception.visualize`: creates all figures from envs, perception and shaping."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import envs.simulator  # noqa: F401 (imported first: MuJoCo then loads without OpenGL)

# isort: split
import numpy as np
import torch
from matplotlib.figure import Figure

from agents.config import PotentialConfig
from agents.tasks import get_task
from envs.demonstrations import Trajectory, load_demonstrations
from envs.files import check_replaceable
from envs.push.env import PushEnv
from envs.push.geometry import GRIDS, RIM, SLOT
from envs.push.make import SUCCESS_SPEEDS
from envs.push.playback import get_simulator_state
from envs.push.success import push_success
from envs.ranges import check_ranges
from perception.picture import write_picture
from perception.rendering import RENDERERS
from perception.visualize.clouds import check_display, show_clouds, write_cloud
from perception.visualize.config import VisualizeConfig
from perception.visualize.film import Film, film_suffix, write_film
from perception.visualize.heatmap import draw_heatmap
from perception.visualize.landscape import curves, survey
from perception.visualize.panel import draw_panel
from perception.visualize.scene import Scene, View, replay, straying
from shaping.potential import Potential
from shaping.value import ValueEstimator

RADIUS = PotentialConfig.radius
GAMMA = 0.99  # discount of the task [1 per step]
IN_SLOT = 0.05  # distance from the puck in the slot to the pusher [m]


def visualize(config: VisualizeConfig) -> list[Path]:
    """Write all output files and return their paths.

    Raises:
        FileNotFoundError: A file is missing.
        FileExistsError: An output file exists and `overwrite` is not set.
        ValueError: A setting is invalid, or files are incompatible.
        GraphicsError: OpenGL or, for a window, a display is missing.
    """
    torch.set_num_threads(1)  # faster for small batches
    if config.window:
        check_display()
    check_ranges(config)
    if config.renderer not in RENDERERS:
        raise ValueError(f"--renderer: unknown renderer {config.renderer!r}; known: {', '.join(RENDERERS)}")
    trajectory, potentials = load_potentials(config)
    film = "demonstration" + film_suffix()
    out = {name: config.out / name for name in ("panel.png", "cloud.ply", "scene.ply")}
    out |= {film: config.out / film} if trajectory else {}
    out |= {"potential.png": config.out / "potential.png"} if potentials else {}
    present = [str(path) for path in out.values() if path.exists()]
    if present and not config.overwrite:
        raise FileExistsError(f"{', '.join(present)}: exists already; choose another --out or --overwrite")
    for path in out.values():
        check_replaceable(path)
    with closing(_scene(config)) as scene:
        config.out.mkdir(parents=True, exist_ok=True)
        print("rendering the start")
        start = _start(scene, config.seed)
        views = look(scene, f"start, seed {config.seed}")
        surroundings = [scene.surroundings(view, camera) for view, camera in zip(views, scene.cameras, strict=True)]
        points, colors = (np.concatenate(part) for part in zip(*surroundings, strict=True))
        write_cloud(out["scene.ply"], points, colors)
        seen = np.concatenate([view.cloud for view in views])
        if len(seen):
            write_cloud(out["cloud.ply"], seen)
        else:
            print(f"left out {out.pop('cloud.ply')}: no camera sees the puck; choose another --seed or more --cameras")
        mapped = {name: phi for name, phi in potentials.items() if name == "state" or len(seen)}
        scene.env.reset(options={"puck": start.goal, "end_effector": start.goal + np.array([IN_SLOT, 0.0])})
        write_picture(draw_panel([*views, *look(scene, "puck in the slot")]), out["panel.png"])

        if mapped:
            print(f"evaluating the potential of {' and '.join(mapped)} over the table")
            write_picture(_maps(scene, mapped, start, config.grids), out["potential.png"])
        elif potentials:
            print(f"left out {out.pop('potential.png')}: it is that of clouds, and none is seen at the start")
        if trajectory:
            write_film(out[film], frames(scene, trajectory, potentials))
    if config.window:
        show_clouds(views[0].points, points, colors)
    return list(out.values())


def draw_potentials(config: VisualizeConfig) -> Figure:
    """Draw Φ over the table, as `visualize` does.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A setting is invalid, files are incompatible, or there is no potential.
    """
    _, potentials = load_potentials(config)
    if not potentials:
        raise ValueError("no potential: demonstrations or an estimator are missing")
    with closing(_scene(config)) as scene:
        return _maps(scene, potentials, _start(scene, config.seed), config.grids)


@dataclass(frozen=True)
class _Start:
    """Observations at the start by name, and positions in the world frame, shape (2,) each [m]."""

    observations: dict[str, np.ndarray]
    puck: np.ndarray
    end_effector: np.ndarray
    goal: np.ndarray


def _start(scene: Scene, seed: int) -> _Start:
    cloud, _ = scene.env.reset(seed=seed)
    state, _ = scene.base.reset(seed=seed)
    tip = scene.base.end_effector_position[:2]
    return _Start({"state": state, "pointcloud": cloud}, scene.base.puck_position[:2], tip, scene.base.goal_position)


def _maps(scene: Scene, potentials: dict[str, list[Potential]], start: _Start, grids: int) -> Figure:
    walls, near = [*SLOT.walls().values(), *RIM.values()], scene.base.robosuite.success_distance
    places = start.puck, start.end_effector, start.goal
    maps = [
        [survey(phi, start.observations[name], *places, walls, near) for name, phi in zip(potentials, row, strict=True)]
        for row in zip(*potentials.values(), strict=True)
    ]
    return draw_heatmap(maps, walls, GRIDS[:grids])


def _scene(config: VisualizeConfig) -> Scene:
    try:
        return Scene(config.grids, config.cameras, config.renderer)
    except ValueError as error:  # the other arguments have been checked
        raise ValueError(f"--cameras: {error}") from error


def load_potentials(config: VisualizeConfig) -> tuple[Trajectory | None, dict[str, list[Potential]]]:
    """Read demonstrations and estimators.

    Returns:
        Demonstration for the video (None without demonstrations), and by observation, clouds first, Φ for every form
        and radius.

    Raises:
        FileNotFoundError: A given file is missing, or an estimator is given and there are no demonstrations.
        ValueError: A file is invalid, or the demonstrations lack the observation of the given estimator.
    """
    named = config.estimator is not None
    task = get_task("push-slot")
    shipped = [task.view(obs).estimator for obs in ("pointcloud", "state")]
    estimators = [config.estimator] if config.estimator is not None else [file for file in shipped if _is_there(file)]
    path = config.demonstrations or task.demonstrations[config.grids]
    if config.demonstrations is None and not path.exists():
        if named:
            raise FileNotFoundError("a potential needs demonstrations too; record some and give --demonstrations")
        print("no demonstrations: neither film nor potential; give --demonstrations")
        return None, {}
    recorded = load_demonstrations(path, filter_key=config.filter_key)
    filmed: Trajectory | None = None
    potentials: dict[str, list[Potential]] = {}
    settings = list(itertools.product(config.combine, config.radius or (RADIUS,)))
    for file in estimators:
        estimator = ValueEstimator.load(file)
        name = estimator.observation
        if not all(name in trajectory.observations for trajectory in recorded):
            reason = f"{file}: made for {name!r} observations, which {path} does not have"
            if named:
                raise ValueError(f"{reason}; choose another --estimator, or record with --obs {name}")
            print(f"left out {reason}")
            continue
        trajectories = until_success(path, config.filter_key, name)
        filmed = filmed or trajectories[0]
        observations = [trajectory.observations[name] for trajectory in trajectories]
        potentials[name] = [Potential(estimator, observations, combine=form, radius=reach) for form, reach in settings]
    if not potentials:
        print("no estimator: no potential; give --estimator")
    return filmed or until_success(path, config.filter_key)[0], potentials


def until_success(path: Path, filter_key: str | None, obs: str | None = None) -> list[Trajectory]:
    """Read demonstrations, truncated at the success speed of the given observation; defaults to that of the state.

    Raises:
        FileNotFoundError: No such file.
        ValueError: The file is invalid, lacks the observation, or has states of another model.
    """
    with closing(PushEnv("push-slot", success_speed=SUCCESS_SPEEDS[obs or "state"])) as task:
        success = push_success(task.goal_reward)
        trajectories = load_demonstrations(path, obs, filter_key, success=success, states=True)
        size = len(get_simulator_state(task))
    for trajectory in trajectories:
        found = size if trajectory.states is None else trajectory.states.shape[1]
        if found != size:
            raise ValueError(
                f"{path}: {trajectory.name}: states: rows have {found} numbers, but this task's have {size}"
            )
    return trajectories


def look(scene: Scene, title: str) -> list[View]:
    """Return the view of the current state from every camera."""
    return [scene.view(camera, f"{title}, {camera}") for camera in scene.cameras]


def frames(scene: Scene, trajectory: Trajectory, potentials: dict[str, list[Potential]]) -> Iterator[np.ndarray]:
    """Yield the video frames of a demonstration, with the curves of the first potential."""
    title, lines = "value of the demonstration", {"V_d": GAMMA ** np.arange(trajectory.horizon, -1, -1)}
    for name, (potential, *_) in list(potentials.items())[:1]:
        title, lines = (
            f"potential of {name} observations ({potential.combine})",
            curves(potential, trajectory.observations[name]),
        )
    camera = scene.cameras[0]
    film, apart = None, []
    for step, frame in enumerate(replay(scene, trajectory)):
        apart.append(frame.distance)
        rgb = scene.rgb(camera)
        film = film or Film(title, lines, (rgb.shape[1], rgb.shape[0]))
        yield film.frame(step, rgb, scene.pixels(camera))
        if step % 25 == 0 or step == trajectory.horizon:
            print(f"filmed step {step} of {trajectory.horizon}")
    recorded = trajectory.states is not None
    print(f"the puck stayed within {1000 * max(apart):.1f} mm of the recording{' by its states' if recorded else ''}")
    if recorded and trajectory.actions is not None:
        strayed = 1000 * straying(scene, trajectory)
        print(f"played back by its actions it strays up to {strayed:.1f} mm, depending on processor, BLAS and MuJoCo")


def _is_there(file: Path | None) -> TypeGuard[Path]:
    return file is not None and file.exists()
