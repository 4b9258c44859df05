"""Run tab: the curve of a run and its episodes, failures first."""

from pathlib import Path
from typing import Any

import numpy as np
import viser

from agents.evaluate import EVALUATE_SEED
from perception.visualize.web.episode import Episode
from perception.visualize.web.events import Events, ignoring
from perception.visualize.web.session import Session
from perception.visualize.web.tabs.player import Player
from perception.visualize.web.training import SHARES, success_curve

NONE = "none yet"


class RunTab:
    """Curve and episodes of the run.

    Args:
        server: Server of the page.
        session: What is shown.
        events: Queue of calls.
        player: Tab of the episode, which shows the chosen one.
        run: Run directory.
    """

    def __init__(self, server: viser.ViserServer, session: Session, events: Events, player: Player, run: Path) -> None:
        self._session, self._events, self._player, self._run = session, events, player, run
        self._episodes: list[Episode] = []
        self._left = 0
        self._evaluations = 0
        gui = server.gui
        self.title = gui.add_markdown("")
        self.curve = gui.add_uplot(
            (np.arange(2.0), np.full(2, np.nan)),
            ({"label": "step"}, {"label": "success rate", "stroke": "#3b528b", "width": 2}),
            scales={"x": {"time": False}, "y": {"range": SHARES}},
            height=150,
        )
        self.count = gui.add_number("episodes", 20, min=1, max=1000, step=1)
        evaluate = gui.add_button("play episodes of the agent")
        self.outcome = gui.add_markdown("")
        self.episode: Any = gui.add_dropdown("episode, failures first", (NONE,))
        evaluate.on_click(events.on(ignoring(self.evaluate)))
        self.episode.on_update(events.on(ignoring(self.choose)))

    def evaluate(self) -> None:
        """Play episodes of the agent, with the seeds of `agents.evaluate`: one in each `tick`."""
        self._episodes, self._left = [], int(self.count.value)

    def tick(self) -> None:
        """Play the next episode; after the last one, list them, failures first."""
        if not self._left:
            return
        self._episodes.append(self._session.play("agent", EVALUATE_SEED + len(self._episodes)))
        self._left -= 1
        won = sum(episode.success for episode in self._episodes)
        still = f", {self._left} left" * bool(self._left)
        self.outcome.content = f"{won} of {len(self._episodes)} episodes succeed{still}"
        if not self._left:
            self._episodes = failures_first(self._episodes)
            self.episode.options = tuple(map(_line, self._episodes))
            self.episode.value = self.episode.options[0]
            self.choose()

    def choose(self) -> None:
        """Show the chosen episode."""
        lines = list(map(_line, self._episodes))
        if self.episode.value in lines:
            self._session.set_episode(self._episodes[lines.index(self.episode.value)])
            self._player.opened()

    def look(self) -> None:
        """Show the curve as it is now, and load the agent anew where it is longer: the run may still be training."""
        steps, rates = success_curve(self._run)
        if len(steps) > self._evaluations and not self._left:
            self._evaluations = len(steps)
            self._session.load_agent(self._run)
        state = f"{100 * rates[-1]:.0f} % after {steps[-1]:.0f} steps" if len(steps) else "no evaluation yet"
        self.title.content = f"**{self._run.name}**: {state}"
        if len(steps) > 1:
            self.curve.data = (steps, rates)


def failures_first(episodes: list[Episode]) -> list[Episode]:
    """Return the episodes with failures first, then the longest."""
    return sorted(episodes, key=lambda episode: (episode.success, -episode.length))


def _line(episode: Episode) -> str:
    return f"{'success' if episode.success else 'failure'}, {episode.length} steps, {episode.title.rpartition(', ')[2]}"
