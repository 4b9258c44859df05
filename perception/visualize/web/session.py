"""What the page shows, without the page: the scene, the potential, and the episode with its present frame."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np
from jaxtyping import Bool, Float, UInt8
from matplotlib import colormaps

import assets
from agents.config import PotentialConfig
from envs.demonstrations import Trajectory
from envs.push.geometry import RIM, SLOT
from perception.cameras import find_id
from perception.rendering import make_renderer
from perception.rendering.geoms import alone
from perception.visualize.config import VisualizeConfig
from perception.visualize.landscape import Landscape, survey
from perception.visualize.pictures import load_potentials
from perception.visualize.scene import CLOUD_SIZE, Scene, View
from perception.visualize.web.episode import Episode, Policy, play, replayed, signals
from perception.visualize.web.policies import Critic, agent, expert, guide
from shaping.potential import Potential

MAP_STEP = 0.02  # distance between the puck positions of the map [m]
Form = Literal["product", "sum"]


@dataclass(frozen=True)
class Frame:
    """What is seen of the present state.

    Attributes:
        view: Images and points of the camera.
        observations: Observations by name: those of the episode, or what cameras see that have been changed since.
        visible: Whether the cameras see the puck.
        unhidden: Pixels of the puck in the image, of those that there would be if nothing were in front of it, in
            [0, 1]; 0 if the puck is out of the image.
        chosen: Position of the demonstrated state that Φ chooses, world frame, xy [m]; None without one.
        potential: Φ; in a frame without the puck that of the last frame that showed it.
    """

    view: View
    observations: dict[str, np.ndarray]
    visible: bool
    unhidden: float
    chosen: Float[np.ndarray, "2"] | None
    potential: float


class Session:
    """State of the page. It belongs to one thread, that of its OpenGL context.

    Args:
        config: Settings of `perception.visualize`.

    Attributes:
        scene: Task with its cameras.
        camera: Name of the camera whose images are shown.
        moved: Whether the camera stands elsewhere than in the task.
        estimators: Files of estimators by title.
        title: Title of the estimator of Φ.
        potential: Φ.
        demonstration: Demonstration of which Φ is made, the first of its file.
        episode: Episode that is shown.
        step: Its present frame.
        signals: What the curves show of it, see `episode.signals`; with Q if the run has a critic.

    Raises:
        FileNotFoundError, ValueError: As `load_potentials` and `policies.agent`.
    """

    title: str
    potential: Potential
    demonstration: Trajectory
    episode: Episode
    signals: dict[str, Float[np.ndarray, " frames"]]

    def __init__(self, config: VisualizeConfig) -> None:
        self._agent: Policy | None = None
        self._critic: Critic | None = None
        self.config = config
        if config.run is not None:
            self.load_agent(config.run)
        self._open_scene()
        files = sorted(assets.path("estimators").glob("push-plane-*.pt"))
        self.estimators = {file.stem.removeprefix("push-plane-"): file for file in files}
        if config.estimator is not None:
            self.estimators = {str(config.estimator): config.estimator, **self.estimators}
        wanted = "pointcloud" if self._agent is None else self._agent.obs
        first = next(iter(self.estimators)) if config.estimator is not None else wanted
        radius = PotentialConfig.radius if config.radius is None else config.radius[0]
        self.set_potential(first, config.combine[0], radius)
        self.show_demonstration()

    @property
    def obs(self) -> str:
        """Observation of the potential."""
        return self.potential.goals.name

    @property
    def policies(self) -> dict[str, Policy]:
        """Policies by name."""
        return {
            **({} if self._agent is None else {"agent": self._agent}),
            "expert": expert(self.scene),
            "guide": guide(self.potential),
        }

    def load_agent(self, run: Path) -> None:
        """Load the agent of a run as it is now: its final policy, or while it trains the best one so far.

        Raises:
            FileNotFoundError, ValueError: As `policies.agent`; the agent is then unchanged.
        """
        self._agent, self._critic, grids = agent(run)
        self.config = replace(self.config, grids=max(grids, self.config.grids))

    def set_potential(self, estimator: str, combine: Form, radius: float, demonstrations: Path | None = None) -> None:
        """Make Φ of an estimator (by its title), a form, a radius [m] and, if given, another file of demonstrations.

        Raises:
            FileNotFoundError, ValueError: A file is missing or does not fit; Φ is then unchanged.
        """
        chosen = replace(self.config, estimator=self.estimators[estimator], combine=(combine,), radius=(radius,))
        if demonstrations is not None:
            chosen = replace(chosen, demonstrations=demonstrations, filter_key=None)
        trajectory, potentials = load_potentials(chosen)
        assert trajectory is not None  # an estimator is named
        self.config, self.demonstration, self.title = chosen, trajectory, estimator
        ((self.potential,),) = potentials.values()
        if hasattr(self, "episode"):
            self._compute_signals()

    def set_scene(self, renderer: str, cameras: tuple[str, ...]) -> None:
        """Change the renderer, and the cameras whose clouds are fused; they stand where the task has them.

        Raises:
            ValueError: One is unknown; the scene then stays.
        """
        before, config = self.scene, self.config
        self.config = replace(config, renderer=renderer, cameras=cameras)
        try:
            self._open_scene()
        except ValueError:
            self.config = config
            raise
        before.close()
        self._changed = True

    def set_camera(self, position: Float[np.ndarray, "3"], wxyz: Float[np.ndarray, "4"]) -> None:
        """Move the camera: position [m] and orientation (OpenCV axes) in the world frame."""
        model = self.scene.base.model
        index = find_id(model, mujoco.mjtObj.mjOBJ_CAMERA, self.camera)
        model.cam_pos[index] = position
        # MuJoCo's camera is OpenCV's turned by half a turn about x.
        mujoco.mju_mulQuat(model.cam_quat[index], np.asarray(wxyz, dtype=float), np.array([0.0, 1.0, 0.0, 0.0]))
        self.moved = self._changed = True

    def set_episode(self, episode: Episode) -> None:
        """Show an episode from its start."""
        self.episode, self.step = episode, 0
        self._changed = self.moved
        self._compute_signals()

    def show_demonstration(self) -> None:
        """Show the demonstration of which Φ is made."""
        self.set_episode(replayed(self.scene, self.demonstration, f"demonstration {self.demonstration.name}"))

    def play(self, policy: str, seed: int, grid: int | None = None) -> Episode:
        """Play an episode, without showing it."""
        return play(self.scene, self.policies[policy], seed, grid)

    def frame(self) -> Frame:
        """Look at the present frame.

        Raises:
            GraphicsError: OpenGL is missing.
        """
        episode, step, name = self.episode, self.step, self.obs
        cloud, info = self.scene.env.reset(options={"simulator": episode.states[step]})
        observations = {key: rows[step] for key, rows in episode.observations.items()}
        visible, potential = bool(episode.visible[step]), float(self.signals["Φ"][step])
        view = self.scene.view(self.camera, episode.title)
        if self._changed:
            observations["pointcloud"], visible = cloud, info["puck_visible"]
        explained = self.potential.explain(observations[name])
        if self._changed and visible:
            potential = explained["potential"]
        chosen = self._place(observations[name], explained["chosen"]) if visible else None
        return Frame(view, observations, visible, self._unhidden_share(view.mask), chosen, potential)

    def demonstrated(self) -> Float[np.ndarray, "goals 2"]:
        """Return the demonstrated positions of the puck, world frame, shape (goals, 2) [m]."""
        return self.potential.demonstrated.goal[:, :2] + self.scene.base.goal_position

    def landscape(self) -> Landscape:
        """Evaluate Φ over the table, with everything else as in the present frame and at rest."""
        base, name = self.scene.base, self.obs
        observation = self.frame().observations[name].copy()
        if name == "state":
            observation[[2, 3, 6, 7]] = 0.0
        places = base.puck_position[:2], base.end_effector_position[:2], base.goal_position
        walls = [*SLOT.walls().values(), *RIM.values()]
        return survey(self.potential, observation, *places, walls, base.robosuite.success_distance, MAP_STEP)

    def close(self) -> None:
        """Close the scene."""
        self.scene.close()

    def _open_scene(self) -> None:
        config = self.config
        self.scene, self.camera = Scene(config.grids, config.cameras, config.renderer), config.cameras[0]
        model = alone(self.scene.base.model, "puck_main")
        self._unhidden = make_renderer("ray", model, self.camera, width=CLOUD_SIZE, height=CLOUD_SIZE)
        self.moved = self._changed = False

    def _compute_signals(self) -> None:
        self.signals = signals(self.episode, self.potential, self.obs)
        if self._critic is not None and self.episode.actions is not None:
            self.signals["Q"] = np.append(self._critic(self.episode), np.nan)

    def _place(
        self, observation: Float[np.ndarray, "..."], chosen: tuple[int, int] | None
    ) -> Float[np.ndarray, "2"] | None:
        if chosen is None:
            return None
        known = self.potential.demonstrated
        goal = known.goal[known.starts[chosen[0]] + chosen[1], :2]
        offset = goal - self.potential.goals.extract(observation)[:2]
        return self.scene.base.puck_position[:2] + offset

    def _unhidden_share(self, mask: Bool[np.ndarray, "rows columns"]) -> float:
        _, whole = self._unhidden.render(self.scene.base.data)
        return float(mask.sum() / whole.sum()) if whole.any() else 0.0


def depth_image(view: View) -> UInt8[np.ndarray, "height width 3"]:
    """Colour a depth image: near bright, far dark, with the puck's sampled points in pink."""
    near, far = np.quantile(view.depth, (0.02, 0.75))
    shade = 1 - np.clip((view.depth - near) / max(far - near, 1e-6), 0, 1)
    image = (255 * colormaps["viridis"](shade)[..., :3]).astype(np.uint8)
    for column, row in view.pixels.astype(int):
        image[max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3] = (255, 47, 160)
    return image
