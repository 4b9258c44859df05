"""Load of the machine by other processes."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from agents.runs.machine import BUSY, Occupation, remark


def test_other_processes_are_those_that_are_not_this_one_nor_its_finished_children():
    """Beside a process that computes, while this one and a child do too; whatever else the machine does."""
    burn = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
    other = subprocess.Popen([sys.executable, "-c", burn.format(30)])
    try:
        time.sleep(0.3)
        of_other, busy, own = psutil.Process(other.pid).cpu_times(), _busy_seconds(), sum(os.times()[:4])
        occupation, start = Occupation(), time.perf_counter()
        subprocess.run([sys.executable, "-c", burn.format(0.7)], check=True)
        exec(burn.format(0.7))
        others, elapsed = occupation.others(), time.perf_counter() - start
        expected = (_busy_seconds() - busy - sum(os.times()[:4]) + own) / elapsed
        used = (psutil.Process(other.pid).cpu_times().user - of_other.user) / elapsed
    finally:
        other.kill()
        other.wait()
    assert others == pytest.approx(expected, abs=0.15) and others > 0.7 * used > 0


def _busy_seconds():
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq + times.steal


def test_a_busy_machine_is_named_in_one_line():
    assert remark() == remark(0.0) == remark(BUSY / 2, 0.0) == ""
    assert remark(0.1, 1.26).startswith("the machine was busy: other processes used up to 1.3 of ")
    assert "used 0.5 of" in remark(0.5) and "\n" not in remark(0.5)
