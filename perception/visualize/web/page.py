"""The page: composes scene and tabs, and serves them until it is interrupted."""

import io
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout

import torch
import viser

from agents.tasks.named import register_named
from envs.push.success import STEP
from envs.ranges import check_ranges
from perception.rendering import RENDERERS
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
            self._player = Player(server, session, self._events, self.show, self._other_episode)
        with tabs.add_tab("Camera"):
            self._camera = CameraTab(server, session, self._stage, self._events, self.show)
        with tabs.add_tab("Potential"):
            self._potential = PotentialTab(server, session, self._stage, self._events, self._other_potential)
        with tabs.add_tab("By hand"):
            self._by_hand = ByHand(server, session, self._stage, self._events, self._player, self._other_potential)
        self._run: RunTab | None = None
        if session.config.run is not None:
            with tabs.add_tab("Run"):
                self._run = RunTab(server, session, self._events, self._player, session.config.run)
        self._stage.show_demonstration()
        self._player.opened()
        self._stage.show_camera()
        self._stage.show_handles()

    def show(self) -> None:
        """Show the present frame in all parts."""
        frame = self._session.frame()
        self._stage.show(frame)
        self._player.told(frame)
        self._camera.told(frame)

    def tick(self) -> None:
        """Serve the clients for one control step [50 ms], and move what moves by itself."""
        started = time.monotonic()
        self._events.attempt(self._by_hand.tick)
        if self._player.playing.value and not self._by_hand.dragging:
            self._events.attempt(self._player.advance)
        if self._run is not None:
            self._events.attempt(self._run.tick)
        if started - self._looked > LOOKS:
            self._looked = started
            self._events.attempt(self._by_hand.look)
            if self._run is not None:
                self._events.attempt(self._run.look)
        self._events.run(max(0.0, STEP - (time.monotonic() - started)))

    def close(self) -> None:
        """Interrupt the training, if one runs."""
        self._by_hand.close()

    def _other_episode(self) -> None:
        self._by_hand.forget()

    def _other_potential(self) -> None:
        self._stage.show_demonstration()
        self._potential.draw()
        self._player.draw()
        self.show()


def serve(config: VisualizeConfig) -> None:
    """Serve the page until Ctrl-C, SIGTERM or SIGHUP.

    Raises:
        FileNotFoundError, ValueError: A file is missing or does not fit, or a setting is invalid.
        OSError: The port is in use, or the address is not one of this machine.
    """
    check_ranges(config)
    register_named(config.imports, "--imports")
    if config.renderer not in RENDERERS:
        raise ValueError(f"--renderer: unknown renderer {config.renderer!r}; known: {', '.join(RENDERERS)}")
    torch.set_num_threads(1)  # faster for small batches
    for ending in (signal.SIGTERM, signal.SIGHUP):  # so that a training of the page ends with it
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as under nohup
            signal.signal(ending, signal.default_int_handler)
    port = free_port(config.host, config.port)
    with (
        closing(Session(config)) as session,
        served(config.host, port) as server,
        closing(Page(server, session)) as page,
    ):
        print(f"http://{config.host}:{server.get_port()}  (Ctrl-C ends it)", flush=True)
        while True:
            page.tick()


def free_port(host: str, port: int) -> int:
    """Return a port at which a server can listen: the given one, or for 0 any that is free.

    Raises:
        OSError: The port is in use, or the address is not one of this machine.
    """
    try:
        with socket.create_server((host, port)) as probe:
            return probe.getsockname()[1]
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        raise OSError(f"--host {host} --port {port}: {reason}; choose another, or --port 0 for any") from error


@contextmanager
def served(host: str, port: int) -> Iterator[viser.ViserServer]:
    """Run a server, which itself would print on standard output."""
    with redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host, port, label="pushcloud", verbose=False)
    server.gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
    try:
        yield server
    finally:
        with redirect_stdout(io.StringIO()):
            server.stop()
