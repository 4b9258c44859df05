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
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]
from typing import Any

import torch

IGNORED = (signal.SIGINT, signal.SIGHUP)  # a terminal sends them to all its processes; this one's parent decides
HELD = {*IGNORED, signal.SIGTERM}  # until the process has handlers of its own
PR_SET_PDEATHSIG = 1


class WorkerError(ChildProcessError):
    """A process that works beside this one has ended."""


class CallError(RuntimeError):
    """A call has raised what cannot be brought to this process; its cause is the traceback there."""


class Inline:
    """The same interface as `Worker` in this process: a call is answered when its answer is asked for.

    Args:
        function: What is called.

    Attributes:
        failed: Whether a call has raised an error.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.failed = function, False
        self.waiting: deque[tuple[Any, ...]] = deque()

    def send(self, *arguments: Any) -> None:
        """Ask for a call with these arguments."""
        self.waiting.append(arguments)

    def receive(self) -> Any:
        """Return what the oldest call returned that is not answered yet."""
        try:
            return self.function(*self.waiting.popleft())
        except Exception:
            self.failed = True
            raise

    def ready(self) -> bool:
        """Whether there is nothing to gain from calling `receive` later."""
        return True

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
        """Ask for a call with these arguments; if the process has ended, `receive` tells it."""
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Any:
        """Wait for what the oldest call returned that is not answered yet.

        Raises:
            WorkerError: The process has ended.
            Exception: What the call raised; its cause is the traceback in the process.
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


def _serve(
    function: Callable[..., Any], pipe: Connection, other_end: Connection, parent: int, mask: set[signal.Signals]
) -> None:
    """Answer calls until the other end is closed."""
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
            except Exception as error:  # whatever it is, it is the caller's
                answer = _packed(error)
            pipe.send_bytes(answer)


def _packed(error: Exception) -> bytes:
    """Pickle an error with its traceback, or, where its class does not allow that, a `CallError` that names it."""
    for sent in (error, CallError(f"{type(error).__name__}: {error}")):
        with contextlib.suppress(Exception):
            packed = pickle.dumps((ExceptionWithTraceback(sent, error.__traceback__), None))
            pickle.loads(packed)
            return packed
    raise error


def works_beside(parallel: str) -> bool:
    """Whether collecting and evaluating have processes of their own: "on", or "auto" where there are two cores."""
    return parallel == "on" or (parallel == "auto" and has_second_core())


def has_second_core() -> bool:
    """Whether this process may use more than one core."""
    return len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) > 1
