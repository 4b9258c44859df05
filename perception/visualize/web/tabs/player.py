"""Episode tab: which episode is shown, its frames, and its curves."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import viser

from envs.push.geometry import GRIDS
from perception.visualize.pictures import until_success
from perception.visualize.web.episode import replayed
from perception.visualize.web.events import Events, ignoring
from perception.visualize.web.session import Frame, Session

COLORS = {"Φ": "#ff2fa0", "V_d": "#3b528b", "Ṽ_g": "#5ec962", "r̄": "#e07b00", "Q": "#7f4fc9"}
ANY = "any"
CHART = 150  # height [pixels]
HELP = """
- **Φ**: potential, 1 on the goal set; **r̄**: shaped reward, r + γΦ(s′) − Φ(s)
- **V_d**: value of the chosen demonstrated state, γ to the steps that remain in the demonstration
- **Ṽ_g**: value of reaching that state from here, γ to the steps to it, learned in the plane without walls
- **Q**: what the agent of the run expects; the black dot is the present frame
- in the scene: green disc, the goal; pink disc, the demonstrated state that Φ chooses; coloured dots, the other
  demonstrated states, bright where V_d is large; pink dots, the 20 points that the agent sees
"""
MARKED = 5  # frames between two marks in the curves of an episode that plays; browsers draw them slowly


class Player:
    """Controls of the episode.

    Args:
        server: Server of the page.
        session: What is shown.
        events: Queue of calls.
        show: Called when another frame is to be shown.
        changed: Called when another episode is to be shown.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        session: Session,
        events: Events,
        show: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._server, self._session, self._show, self._changed = server, session, show, changed
        gui = server.gui
        self.title = gui.add_markdown("")
        with gui.add_folder("what is shown", expand_by_default=False):
            gui.add_markdown(HELP)
        self.playing: Any = gui.add_checkbox("play", False, hint="At most 20 frames a second, as in the task.")
        self.slider: Any = gui.add_slider("step", 0, 1, 1, 0)
        self._charts = {
            names: gui.add_uplot(
                (np.zeros(2),) * (len(names) + 2), _series(names), scales=_scales([np.zeros(2)]), height=CHART
            )
            for names in (("Φ", "V_d", "Ṽ_g"), ("r̄", "Q"))
        }
        with gui.add_folder("new episode"):
            self.policy = gui.add_dropdown("policy", tuple(session.policies))
            self.seed = gui.add_number("seed", 0, min=0, max=2**32 - 1, step=1)
            self.grid = gui.add_dropdown("reset grid", (ANY, *map(str, range(1, len(GRIDS) + 1))))
            play = gui.add_button("play the policy")
        with gui.add_folder("recorded episode"):
            shown = session.config.demonstrations
            self.file = gui.add_text(
                "HDF5 file", "" if shown is None else str(shown), hint="Default: the demonstration of Φ."
            )
            self.number = gui.add_number("number", 0, min=0, step=1)
            replay = gui.add_button("replay it")
        self.slider.on_update(events.on_latest(lambda _: self._seek(self.slider.value)))
        play.on_click(events.on(ignoring(self.play)))
        replay.on_click(events.on(ignoring(self.replay)))

    def play(self) -> None:
        """Play an episode of the chosen policy, and show it."""
        grid = None if self.grid.value == ANY else int(self.grid.value) - 1
        self._session.set_episode(self._session.play(self.policy.value, int(self.seed.value), grid))
        self.opened()
        self.playing.value = True

    def replay(self) -> None:
        """Replay a recorded demonstration, and show it.

        Raises:
            FileNotFoundError, ValueError: The file cannot be read, or there is no demonstration of this number.
        """
        path, session = Path(self.file.value), self._session
        number = int(self.number.value)
        if not self.file.value:
            if number:
                raise ValueError(f"number {number}: without a file there is only the demonstration of Φ, number 0")
            session.show_demonstration()
            return self.opened()
        found = until_success(path, None)
        if number >= len(found):
            raise ValueError(f"{path}: holds the demonstrations 0 to {len(found) - 1}, not {number}")
        session.set_episode(replayed(session.scene, found[number], f"{path.name}, {found[number].name}"))
        return self.opened()

    def opened(self) -> None:
        """Show the first frame and the curves of an episode that is new."""
        self.slider.max = max(1, self._session.episode.length)
        self._changed()
        self.draw()
        self._seek(0)

    def draw(self) -> None:
        """Draw the curves."""
        signals = self._session.signals
        with self._server.atomic():  # each chart must have as many curves as rows of data
            for names, chart in self._charts.items():
                shown = [name for name in names if name in signals]
                chart.series, chart.scales = _series(shown), _scales([signals[name] for name in shown])
            self._mark()

    def advance(self) -> None:
        """Show the next frame; after the last, the first."""
        self._seek((self._session.step + 1) % (self._session.episode.length + 1))

    def told(self, frame: Frame) -> None:
        """Show the numbers of a frame."""
        episode, step = self._session.episode, self._session.step
        outcome = "success" if episode.success else "no success"
        seen = "" if frame.visible else ", **puck hidden**"
        self.title.content = (
            f"**{episode.title}**: {outcome} after {episode.length} steps  \n"
            f"step {step}: Φ = {frame.potential:.3f}{seen}"
        )

    def _seek(self, step: int) -> None:
        self._session.step = min(int(step), self._session.episode.length)
        self.slider.value = self._session.step
        if not self.playing.value or self._session.step % MARKED == 0:
            self._mark()
        self._show()

    def _mark(self) -> None:
        """Draw the curves, with a dot at the present frame."""
        steps = np.arange(self._session.episode.length + 1)
        for names, chart in self._charts.items():
            rows = {name: row for name, row in self._session.signals.items() if name in names}
            now = np.where(steps == self._session.step, rows[names[0]], np.nan)
            chart.data = (steps.astype(float), *rows.values(), now)


def _scales(rows: Sequence[np.ndarray]) -> dict[str, Any]:
    """Return the axes of a chart; the range of values is given, since uPlot finds none where there are gaps."""
    low, high = float(min(map(np.nanmin, rows))), float(max(map(np.nanmax, rows)))
    margin = 0.05 * max(high - low, 0.1)
    return {"x": {"time": False}, "y": {"range": (low - margin, high + margin)}}


def _series(names: Iterable[str]) -> tuple[Any, ...]:
    """Return the style of a chart with one curve for each name, and a dot at the present frame."""
    style = [{"label": name, "stroke": COLORS[name], "width": 2} for name in names]
    now = {"label": "now", "stroke": "#000000", "points": {"show": True, "size": 9, "fill": "#000000"}}
    return ({"label": "step"}, *style, now)
