"""By-hand tab: drag the puck to make a demonstration, save it, and train on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import viser

from agents.config import METHODS
from envs.demonstrations import Trajectory, save_demonstrations
from envs.push.playback import describe_environment
from perception.visualize.web.demonstration import demonstrate_path
from perception.visualize.web.episode import replayed
from perception.visualize.web.events import Events, ignoring
from perception.visualize.web.hand import SPEED, follow, on_table
from perception.visualize.web.session import Session
from perception.visualize.web.stage import Stage, on_plane
from perception.visualize.web.tabs.player import Player
from perception.visualize.web.training import SHARES, Training

MOVED = 0.0005  # shortest motion of the puck that counts as a step [m]
BACK = 20  # steps that are taken back at once
STEPS = 25_000  # environment steps of a training
METHOD = "potential+annealing+guide"  # which needs no actions
HELP = (
    "Drag the puck with the left mouse button, around the wall and into the slot. It follows at up to "
    f"{SPEED:g} m/s and slides along walls; pauses are left out. Saving renders the clouds, with the pusher behind the "
    "puck on its path; the demonstrated pusher has no effect on goals or Φ."
)


class ByHand:
    """Controls of a demonstration by hand.

    Args:
        server: Server of the page.
        session: What is shown.
        stage: Nodes of the scene.
        events: Queue of calls.
        player: Tab of the episode, which shows what was saved.
        changed: Called when Φ is another.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        session: Session,
        stage: Stage,
        events: Events,
        player: Player,
        changed: Callable[[], None],
    ) -> None:
        self._session, self._stage, self._events, self._player = session, stage, events, player
        self._changed = changed
        self._path: list[np.ndarray] = []
        self._target: np.ndarray | None = None
        self._training: Training | None = None
        gui = server.gui
        gui.add_markdown(HELP)
        self.grid = gui.add_dropdown("reset grid", tuple(map(str, range(1, session.config.grids + 1))))
        self.seed = gui.add_number("seed", 0, min=0, max=2**32 - 1, step=1)
        start = gui.add_button("start anew")
        back = gui.add_button("take back a second")
        self.told = gui.add_markdown("")
        self.file = gui.add_text("HDF5 file", "demonstrations/by-hand.hdf5")
        self.replace = gui.add_checkbox("replace the file", False)
        save = gui.add_button("save")
        with gui.add_folder("train on it"):
            self.obs = gui.add_dropdown("observation", ("pointcloud", "state"))
            methods = tuple(name for name, method in METHODS.items() if not method.demonstrations)
            hint = "Those without a buffer, which would need actions."
            self.method = gui.add_dropdown("method", methods, initial_value=METHOD, hint=hint)
            train = gui.add_button("train")
            stop = gui.add_button("stop", hint="The run keeps its checkpoint; agents.train --resume continues it.")
            self.progress = gui.add_markdown("")
            self.curve = gui.add_uplot(
                (np.arange(2.0), np.full(2, np.nan)),
                ({"label": "step"}, {"label": "success rate", "stroke": "#ff2fa0", "width": 2}),
                scales={"x": {"time": False}, "y": {"range": SHARES}},
                height=150,
            )
        stage.puck_mesh.on_drag("left")(events.on(self._dragged))
        for button, call in ((start, self.start), (back, self.take_back), (save, self.save), (train, self.train)):
            button.on_click(events.on(ignoring(call)))
        stop.on_click(events.on(ignoring(self.stop)))

    def start(self) -> None:
        """Put the puck at the start of a seed."""
        options = {"grid": int(self.grid.value) - 1}
        self._session.scene.env.reset(seed=int(self.seed.value), options=options)
        self._path = [self._session.scene.base.puck_position[:2]]
        self._show()

    def take_back(self) -> None:
        """Take back the last steps, if there are any."""
        if self._path:
            self._path = self._path[: max(1, len(self._path) - BACK)]
            self._show()

    def save(self) -> None:
        """Write the demonstration, and show it.

        Raises:
            ValueError: It does not end in the goal set, the camera does not see the puck everywhere, or was moved.
            FileExistsError, OSError: The file exists, or cannot be written.
        """
        path, scene = Path(self.file.value), self._session.scene
        if path.suffix not in (".hdf5", ".h5"):
            raise ValueError(f"HDF5 file is {self.file.value!r}; give a name that ends in .hdf5")
        if self._session.moved:
            raise ValueError("the camera was moved, and that of an agent is not; put it back in the tab Camera")
        trajectory: Trajectory = demonstrate_path(scene, self._path)
        if path.exists() and not self.replace.value:
            raise FileExistsError(f"{path}: exists already; choose another file, or tick: replace the file")
        save_demonstrations(path, [trajectory], describe_environment(scene.env), overwrite=self.replace.value)
        self._events.tell("saved", f"{path}: {trajectory.horizon} steps", "green")
        potential = self._session.potential
        self._session.set_potential(self._session.title, potential.combine, potential.radius, path)
        self._changed()
        self._session.set_episode(replayed(scene, trajectory, f"{path.name}, by hand"))
        self._player.opened()

    def train(self) -> None:
        """Start a training on the saved file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A training is running.
        """
        path = Path(self.file.value)
        if self.running:
            raise ValueError("a training is running; stop it first")
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file; save the demonstration first")
        self._training = Training(path, self.obs.value, self.method.value, STEPS, self._session.config.grids)

    def stop(self) -> None:
        """End the training, which then writes a checkpoint.

        Raises:
            ValueError: No training is running.
        """
        if self._training is None or not self.running:
            raise ValueError("no training is running")
        self._training.stop()

    def forget(self) -> None:
        """Forget the path; the next one begins at the puck that is shown."""
        self._path, self._target = [], None

    def close(self) -> None:
        """End the training, and wait for its end."""
        if self._training is not None:
            self._training.close()

    @property
    def running(self) -> bool:
        """Whether a training runs."""
        return self._training is not None and self._training.running

    @property
    def dragging(self) -> bool:
        """Whether the mouse holds the puck."""
        return self._target is not None

    def tick(self) -> None:
        """Move the puck by one control step towards the mouse."""
        if self._target is None:
            return
        place = follow(self._path[-1], self._target, self._session.scene.base.puck.radius)
        if np.linalg.norm(place - self._path[-1]) >= MOVED:
            self._path.append(place)
            self._show()

    def look(self) -> None:
        """Show how far the training is."""
        if self._training is not None:
            self.progress.content = self._training.summary()
            steps, rates = self._training.curve()
            if len(steps) > 1:
                self.curve.data = (steps, rates)

    def _dragged(self, event: Any) -> None:
        if event.phase == "end":
            self._target = None
            return
        if not self._path:
            self._path = [self._session.scene.base.puck_position[:2]]
        place = on_plane(np.array(event.client.camera.position), np.array(event.end_position))
        if place is not None:
            self._target = on_table(place)

    def _show(self) -> None:
        place, goal = self._path[-1], self._session.scene.base.goal_position
        self._player.playing.value = False
        self._stage.move_puck(place)
        away = 100 * float(np.linalg.norm(place - goal))
        self.told.content = f"{len(self._path) - 1} steps, {away:.1f} cm from the goal"
