"""The page: composes scene and tabs, and serves them until it is interrupted."""

import time
from contextlib import closing

import viser

from envs.push.success import STEP
from perception.visualize.config import VisualizeConfig
from perception.visualize.web.events import Events
from perception.visualize.web.session import Session
from perception.visualize.web.stage import Stage
from perception.visualize.web.tabs.by_hand import ByHand
from perception.visualize.web.tabs.camera import CameraTab
from perception.visualize.web.tabs.player import Player
from perception.visualize.web.tabs.potential import PotentialTab
from perception.visualize.web.tabs.run import RunTab

LOOKS = 2.0  # time between two looks at the files of runs [s]


class Page:
    """Scene, panel and the loop that moves them. All clients see the same.

    Args:
        server: Server of the page.
        session: What is shown.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._session, self._looked = session, 0.0
        self._events = Events(server)
        self._stage = Stage(server, session)
        tabs = server.gui.add_tab_group()
        with tabs.add_tab("Episode"):
            self._player = Player(server, session, self._events, self.show)
        with tabs.add_tab("Camera"):
            self._camera = CameraTab(server, session, self._stage, self._events, self.show)
        with tabs.add_tab("Potential"):
            self._potential = PotentialTab(server, session, self._stage, self._events, self._other_potential)
        with tabs.add_tab("By hand"):
            self._by_hand = ByHand(server, session, self._stage, self._events, self._player)
        self._run: RunTab | None = None
        if session.config.run is not None:
            with tabs.add_tab("Run"):
                self._run = RunTab(server, session, self._events, self._player, session.config.run)
        self._stage.show_demonstration()
        self._player.opened()
        self._stage.show_camera()

    def show(self) -> None:
        """Show the present frame in all parts."""
        frame = self._session.frame()
        self._stage.show(frame)
        self._player.told(frame)
        self._camera.told(frame)

    def tick(self) -> None:
        """Serve the clients for one control step [50 ms], and move what moves by itself."""
        started = time.monotonic()
        self._by_hand.tick()
        if self._player.playing.value and not self._by_hand.dragging:
            self._player.advance()
        if started - self._looked > LOOKS:
            self._looked = started
            self._by_hand.look()
            if self._run is not None:
                self._run.look()
        self._events.run(max(0.0, STEP - (time.monotonic() - started)))

    def close(self) -> None:
        """Interrupt the training, if one runs."""
        self._by_hand.stop()

    def _other_potential(self) -> None:
        self._player.draw()
        self.show()


def serve(config: VisualizeConfig) -> None:
    """Serve the page until Ctrl-C.

    Raises:
        FileNotFoundError, ValueError: A file is missing or does not fit, or a name is unknown.
        OSError: The port is in use, or the address is not one of this machine.
    """
    with closing(Session(config)) as session:
        server = start_server(config.host, config.port)
        try:
            with closing(Page(server, session)) as page:
                print(f"http://{config.host}:{server.get_port()}  (Ctrl-C ends it)", flush=True)
                while True:
                    page.tick()
        finally:
            server.stop()


def start_server(host: str, port: int) -> viser.ViserServer:
    """Start the server on a port; 0 takes any that is free.

    Raises:
        OSError: The port is in use, or the address is not one of this machine.
    """
    server = viser.ViserServer(host, port, label="pushcloud", verbose=False)
    if port not in (0, server.get_port()):
        server.stop()
        raise OSError(f"--port {port} is in use; choose another, or 0 for any that is free")
    server.gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
    return server
