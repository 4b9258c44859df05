import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.collecting.worker import Inline, Worker, WorkerError


def double(x):
    if x < 0:
        raise ValueError(f"{x} is below 0")
    return os.getpid(), 2 * x


@pytest.fixture
def worker():
    worker = Worker(double, "the doubling process")
    yield worker
    worker.close()


def test_answers_come_in_the_order_of_the_calls_from_another_process(worker):
    for x in (1, 2, 3):
        worker.send(x)
    pids, answers = zip(*(worker.receive() for _ in range(3)), strict=True)
    assert answers == (2, 4, 6)
    assert set(pids) == {worker.process.pid} != {os.getpid()}


def test_inline_answers_alike():
    inline = Inline(double)
    inline.send(1)
    inline.send(2)
    assert [inline.receive()[1], inline.receive()[1]] == [2, 4]


def test_errors_are_raised_here_and_the_process_goes_on(worker):
    worker.send(-1)
    worker.send(4)
    with pytest.raises(ValueError, match="-1 is below 0"):
        worker.receive()
    assert worker.receive()[1] == 8


def test_a_killed_process_is_named_with_its_signal(worker):
    worker.send(1)
    worker.receive()
    os.kill(worker.process.pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match="the doubling process ended by SIGKILL"):
        worker.send(1)
        worker.receive()


def test_signals_of_the_terminal_do_not_end_it(worker):
    worker.send(1)
    worker.receive()
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(worker.process.pid, number)
    worker.send(5)
    assert worker.receive()[1] == 10


def test_it_ends_with_its_parent():
    program = (
        "import os, signal; from agents.collecting.worker import Worker; w = Worker(os.getpid, 'w'); w.send();"
        "print(w.receive(), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    child = int(run.stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        time.sleep(0.05)
    pytest.fail(f"process {child} outlived its parent")
