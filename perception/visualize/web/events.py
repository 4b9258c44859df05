"""Calls from the browser, made one after another by the thread that owns the scene."""

import queue
import time
from collections.abc import Callable, Coroutine
from typing import Any

import viser

Call = Callable[[Any], None]
ERRORS = (ValueError, OSError, ImportError, FloatingPointError)  # of the user, as on the command line


def ignoring(call: Callable[[], None]) -> Call:
    """Return a call that takes an event and does not need it."""
    return lambda _: call()


class Events:
    """Queue between viser's threads and the thread of the scene, whose OpenGL context belongs to that thread.

    Args:
        server: Server of the page; errors are shown to all of its clients.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._waiting: queue.SimpleQueue[tuple[Call, Any]] = queue.SimpleQueue()

    def on(self, call: Call) -> Callable[[Any], Coroutine[Any, Any, None]]:
        """Return a callback for viser that queues a call with the event; changes made by the server are left out."""

        # Asynchronous callbacks keep the order of the events; viser runs others in a pool of threads.
        async def queued(event: Any) -> None:
            if event.client_id is not None:
                self._waiting.put((call, event))

        return queued

    def run(self, seconds: float) -> None:
        """Make the calls that arrive within a time [s]; an error of the user is shown, and the page goes on."""
        end = time.monotonic() + seconds
        while True:
            try:
                call, event = self._waiting.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return
            try:
                call(event)
            except ERRORS as error:
                self.tell("not possible", str(error), "red")

    def tell(self, title: str, text: str, color: Any = "blue") -> None:
        """Show a notification to all clients."""
        for client in self._server.get_clients().values():
            client.add_notification(title, " ".join(text.split()), color=color)
