"""Worker process that calls a function and returns the results in the order of the requests."""

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
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]
from typing import Any

import torch

IGNORED = (signal.SIGINT, signal.SIGHUP)  # sent by a terminal to all its processes; only the parent reacts
HELD = {*IGNORED, signal.SIGTERM}  # blocked until the worker process has set its own handlers
PR_SET_PDEATHSIG = 1


class WorkerError(ChildProcessError):
    """A worker process has ended."""


class CallError(RuntimeError):
    """A call in a worker process raised an error that cannot be pickled; the cause is the traceback there."""


class Inline:
    """Same interface as `Worker` in this process; a call is executed when its result is received.

    Args:
        function: Function to call.

    Attributes:
        failed: Whether a call has raised an error.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.failed = function, False
        self.waiting: deque[tuple[Any, ...]] = deque()

    def send(self, *arguments: Any) -> None:
        """Request a call with these arguments."""
        self.waiting.append(arguments)

    def receive(self) -> Any:
        """Execute the oldest pending call and return its result."""
        try:
            return self.function(*self.waiting.popleft())
        except Exception:
            self.failed = True
            raise

    def ready(self) -> bool:
        """Return True, because waiting does not make `receive` faster."""
        return True

    def close(self) -> None:
        """Discard the pending calls."""
        self.waiting.clear()


class Worker:
    """Forked process that calls one function.

    Because it is forked, it has the registered encoders and the environments of this process. It ignores the signals of
    the terminal, and ends with this process for whatever reason that ends.

    Args:
        function: Function to call; arguments and results are pickled.
        name: Name in error messages, such as "the collecting process".

    Attributes:
        failed: Whether a call has raised an error, or the process has ended.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        context = multiprocessing.get_context("fork")
        self.name, self.failed = name, False
        self.pipe, theirs = context.Pipe()
        parent = os.getpid()
        sys.stdout.flush()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
        try:
            arguments = (function, theirs, self.pipe, parent, mask)
            self.process = context.Process(target=_serve, args=arguments, daemon=True)
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()

    def send(self, *arguments: Any) -> None:
        """Request a call with these arguments; if the process has ended, `receive` raises the error."""
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Any:
        """Wait for the result of the oldest pending call.

        Raises:
            WorkerError: The process has ended.
            Exception: The error that the call raised; its cause is the traceback in the worker process.
        """
        try:
            error, result = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            error = self._ended()
        if error is not None:
            self.failed = True
            raise error
        return result

    def ready(self) -> bool:
        """Return whether `receive` would return immediately."""
        return self.pipe.poll()

    def close(self) -> None:
        """End the process; repeated calls have no effect."""
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


def _serve(
    function: Callable[..., Any], pipe: Connection, other_end: Connection, parent: int, mask: set[signal.Signals]
) -> None:
    """Execute calls until the other end of the pipe is closed."""
    other_end.close()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):
        while True:
            arguments = pickle.loads(pipe.recv_bytes())
            try:
                answer = pickle.dumps((None, function(*arguments)), protocol=pickle.HIGHEST_PROTOCOL)
            except Exception as error:  # raised again in the parent process
                answer = _packed(error)
            pipe.send_bytes(answer)


def _packed(error: Exception) -> bytes:
    """Pickle an error with its traceback, or a `CallError` that names it if the error cannot be pickled."""
    for sent in (error, CallError(f"{type(error).__name__}: {error}")):
        with contextlib.suppress(Exception):
            packed = pickle.dumps((ExceptionWithTraceback(sent, error.__traceback__), None))
            pickle.loads(packed)
            return packed
    raise error


def works_beside(parallel: str, opengl: bool = False) -> bool:
    """Return whether worker processes collect and evaluate: "on", or "auto" with at least two cores.

    Args:
        parallel: "on", "off" or "auto".
        opengl: Whether observations are drawn by OpenGL, which a forked process cannot use: "auto" is then "off".

    Raises:
        ValueError: "on" where observations are drawn by OpenGL.
    """
    if opengl and parallel == "on":
        raise ValueError("--parallel on: observations drawn by OpenGL stay in one process; choose auto or off")
    return parallel == "on" or (parallel == "auto" and not opengl and has_second_core())


def has_second_core() -> bool:
    """Return whether this process may use more than one core."""
    return len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) > 1
