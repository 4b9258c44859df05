"""A process that works beside this one, and answers in the order in which it was asked."""

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

IGNORED = (signal.SIGINT, signal.SIGHUP)  # a terminal sends them to all its processes; this one's parent decides
PR_SET_PDEATHSIG = 1


class WorkerError(RuntimeError):
    """A process that works beside this one has ended."""


class Inline:
    """The same interface as `Worker` in this process: a call is answered when its answer is asked for.

    Args:
        function: What is called.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.waiting: deque[tuple[Any, ...]] = deque()

    def send(self, *arguments: Any) -> None:
        """Ask for a call with these arguments."""
        self.waiting.append(arguments)

    def receive(self) -> Any:
        """Return what the oldest call returned that is not answered yet."""
        return self.function(*self.waiting.popleft())

    def ready(self) -> bool:
        """Whether `receive` returns at once."""
        return False

    def close(self) -> None:
        """Forget what was asked for."""
        self.waiting.clear()


class Worker:
    """A forked process that calls one function.

    It is a fork, so that what this process registered or built (encoders, environments) is there too. It takes no part
    in signals of the terminal, and ends with this process, however that ends.

    Args:
        function: What is called; arguments and results are pickled.
        name: For errors, such as "the collecting process".
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        context = multiprocessing.get_context("fork")
        self.name = name
        self.pipe, theirs = context.Pipe()
        parent = os.getpid()
        sys.stdout.flush()
        self.process = context.Process(target=_serve, args=(function, theirs, self.pipe, parent), daemon=True)
        self.process.start()
        theirs.close()

    def send(self, *arguments: Any) -> None:
        """Ask for a call with these arguments.

        Raises:
            WorkerError: The process has ended.
        """
        try:
            self.pipe.send_bytes(pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL))
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> Any:
        """Wait for what the oldest call returned that is not answered yet.

        Raises:
            WorkerError: The process has ended.
            Exception: What the call raised.
        """
        try:
            error, result = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError) as broken:
            raise self._ended() from broken
        if error is not None:
            raise error
        return result

    def ready(self) -> bool:
        """Whether `receive` returns at once."""
        return self.pipe.poll()

    def close(self) -> None:
        """End the process; calling it again is harmless."""
        self.pipe.close()
        self.process.join(timeout=1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _ended(self) -> WorkerError:
        self.process.join(timeout=1)
        code = self.process.exitcode
        how = "" if code is None else f" by {signal.Signals(-code).name}" if code < 0 else f" with status {code}"
        return WorkerError(f"{self.name} ended{how}")


def _serve(function: Callable[..., Any], pipe: Connection, other_end: Connection, parent: int) -> None:
    """Answer calls until the other end is closed."""
    other_end.close()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):
        while True:
            arguments = pickle.loads(pipe.recv_bytes())
            answer: tuple[Exception | None, Any]
            try:
                answer = (None, function(*arguments))
            except Exception as error:  # whatever it is, it is the caller's
                answer = (error, None)
            pipe.send_bytes(pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL))
