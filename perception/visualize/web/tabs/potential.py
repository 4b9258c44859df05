"""Potential tab: which estimator, form and radius Φ has, and its map on the table."""

from collections.abc import Callable
from typing import Any

import viser

from perception.visualize.web.events import Events, ignoring
from perception.visualize.web.session import Session
from perception.visualize.web.stage import Stage


class PotentialTab:
    """Controls of Φ.

    Args:
        server: Server of the page.
        session: What is shown.
        stage: Nodes of the scene.
        events: Queue of calls.
        changed: Called when Φ is another.
    """

    def __init__(
        self, server: viser.ViserServer, session: Session, stage: Stage, events: Events, changed: Callable[[], None]
    ) -> None:
        self._session, self._stage, self._changed = session, stage, changed
        gui, potential = server.gui, session.potential
        titles = tuple(session.estimators)
        self.estimator = gui.add_dropdown(
            "prior", titles, initial_value=session.title, hint="Observation, and encoder if not the usual."
        )
        self.combine = gui.add_dropdown(
            "form", ("product", "sum"), initial_value=potential.combine, hint="V_d · Ṽ_g or V_d + Ṽ_g."
        )
        self.radius = gui.add_slider("radius [m]", 0.02, 0.3, 0.01, potential.radius)
        self.mapped = gui.add_checkbox("map on the table", False, hint="Φ with the puck at rest there; takes seconds.")
        self.legend = gui.add_markdown(
            "Dots: demonstrated states, bright where V_d is large. Pink disc: the state that Φ chooses. "
            "Map: black is 0, white the largest value; light blue is where walls leave no room for the puck."
        )
        for control in (self.estimator, self.combine, self.radius):
            control.on_update(events.on_latest(ignoring(self.apply)))
        self.mapped.on_update(events.on(ignoring(self.draw)))

    def apply(self) -> None:
        """Make Φ as it is set."""
        form: Any = self.combine.value
        self._session.set_potential(self.estimator.value, form, self.radius.value)
        self._changed()

    def draw(self) -> None:
        """Draw the map of the present frame, or hide it."""
        self._stage.show_map(self._session.landscape() if self.mapped.value else None)
