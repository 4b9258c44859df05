"""Calls from the browser, made one after another by the thread that owns the scene."""

import queue
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import viser

Call = Callable[[Any], None]
TOLD = 12.0  # time for which a notification is shown [s]
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
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def on(self, call: Call) -> Callable[[Any], Coroutine[Any, Any, None]]:
        """Return a callback for viser that queues a call with the event; changes made by the server are left out."""

        # Asynchronous callbacks keep the order of the events; viser runs others in a pool of threads.
        async def queued(event: Any) -> None:
            if event.client_id is not None:
                self._waiting.put(partial(call, event))

        return queued

    def on_latest(self, call: Call) -> Callable[[Any], Coroutine[Any, Any, None]]:
        """Return a callback as `on`, which leaves out an event if a later one arrives before its call is made.

        For what a user drags: browsers send 20 positions a second, and a frame may take longer than that to draw.
        """
        lock, latest = threading.Lock(), list[Any]()

        def call_latest() -> None:
            with lock:
                event = latest.pop()
                latest.clear()
            call(event)

        async def queued(event: Any) -> None:
            if event.client_id is not None:
                with lock:
                    latest.append(event)
                    first = len(latest) == 1
                if first:
                    self._waiting.put(call_latest)

        return queued

    def run(self, seconds: float) -> None:
        """Make the calls that arrive within a time [s], at least one that waits."""
        end = time.monotonic() + seconds
        while True:
            try:
                call = self._waiting.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return
            self.attempt(call)
            if time.monotonic() > end:
                return

    def attempt(self, call: Callable[[], None]) -> None:
        """Make a call; an error is shown, one of the program also printed, and the page goes on."""
        try:
            call()
        except ERRORS as error:
            self.tell("not possible", str(error), "red")
        except Exception as error:
            traceback.print_exc()
            self.tell("an error of the program", repr(error), "red")

    def tell(self, title: str, text: str, color: Any = "blue") -> None:
        """Show a notification to all clients."""
        for client in self._server.get_clients().values():
            client.add_notification(title, " ".join(text.split()), color=color, auto_close_seconds=TOLD)
