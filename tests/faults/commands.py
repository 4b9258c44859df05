"""Run the project's commands as processes of their own, and see how they end."""

import multiprocessing
import os
import resource
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agents import evaluate, train

# A server that has imported the commands forks the processes: each starts in an instant, and none has threads.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.faults.commands"])
SETTINGS = shlex.split(
    "--steps 60 --checkpoint-every 10 --evaluation.every 25 --evaluation.episodes 1 --evaluation.final-episodes 1 "
    "--learner.learning-starts 10 --learner.batch-size 16 --learner.net-arch 32 32 --learner.block 5 "
    "--learner.update-ratio 0.4 --device cpu"
)


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        code: Exit status, negative for a signal.
        output: Standard output.
        errors: Standard error.
    """

    code: int
    output: str
    errors: str

    @property
    def works(self) -> bool:
        """It did what it was told, and said nothing else."""
        return self.code == 0 and not self.errors

    @property
    def one_line(self) -> bool:
        """It said in one line why it does not."""
        return self.code == 2 and self.errors.startswith("error: ") and self.errors.count("\n") == 1

    @property
    def clear(self) -> bool:
        """Either of them."""
        return self.works or self.one_line


@dataclass(frozen=True)
class Fault:
    """What happens to a process.

    Attributes:
        seconds: Time after which it is killed; None waits.
        operation: Number of the operation on files, in its run directory, before which it is killed.
        file: Part of the name of a file there; the process is killed when it has opened such a file to write it.
        largest_file: Size that no file may exceed [bytes].
        output: Where its standard output goes instead.
    """

    seconds: float | None = None
    operation: int | None = None
    file: str | None = None
    largest_file: int | None = None
    output: Path | None = None


def run_train(directory: Path, fault: Fault | None = None) -> Outcome:
    """Train in `directory`, or resume what is there."""
    begun = (directory / "config.json").exists()
    arguments = ["--resume", str(directory)] if begun else ["--out", str(directory), *SETTINGS]
    return _run(train.main, arguments, directory, fault or Fault())


def run_evaluate(directory: Path, fault: Fault | None = None) -> Outcome:
    """Evaluate what is in `directory`."""
    return _run(evaluate.main, [str(directory), "--episodes", "1"], directory, fault or Fault())


def _run(command: Callable, arguments: list[str], directory: Path, fault: Fault) -> Outcome:
    with tempfile.TemporaryDirectory() as logs:
        process = CONTEXT.Process(target=_child, args=(command, arguments, directory, fault, Path(logs)))
        process.start()
        process.join(300 if fault.seconds is None else fault.seconds)
        process.kill()
        process.join()
        paths = (Path(logs) / "out", Path(logs) / "err")
        return Outcome(process.exitcode, *(path.read_text() if path.exists() else "" for path in paths))


def _child(command: Callable, arguments: list[str], directory: Path, fault: Fault, logs: Path) -> None:
    for path, descriptor in ((fault.output or logs / "out", 1), (logs / "err", 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", 1)
    if fault.largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.largest_file, fault.largest_file))
    if fault.operation is not None:
        sys.addaudithook(_kill_before(directory, fault.operation))
    if fault.file is not None:
        sys.addaudithook(_kill_at_opening(directory, fault.file))
    command(arguments)


def _kill_before(directory: Path, operation: int) -> Callable:
    """Kill this process before the operation of that number on files below `directory`."""
    left = operation

    def hook(event: str, arguments: tuple) -> None:
        nonlocal left
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir") or (
            event == "open" and arguments[1] != "r"
        )
        if changes and str(arguments[0]).startswith(str(directory)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def _kill_at_opening(directory: Path, file: str) -> Callable:
    """Kill this process when it has opened a file below `directory` to write it, and written nothing yet."""

    def hook(event: str, arguments: tuple) -> None:
        written = event == "open" and arguments[1] is not None and arguments[1][0] in "wx"
        if written and str(arguments[0]).startswith(str(directory)) and file in str(arguments[0]):
            os.close(os.open(arguments[0], os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            os.kill(os.getpid(), signal.SIGKILL)

    return hook
