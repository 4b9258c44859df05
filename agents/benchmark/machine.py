"""What figures are measured on, and how much of it other processes used meanwhile."""

import os
import platform
import time
from pathlib import Path
from typing import Any

import psutil
import torch

from agents.sac.device import resolve_device, resolve_precision

BUSY = 0.2  # cores of other processes, from which on figures are said to be of a shared machine


class Occupation:
    """Measures, from its construction on, how many cores other processes use."""

    def __init__(self) -> None:
        psutil.cpu_percent()  # since when the next call counts
        self.start, self.own = time.perf_counter(), _own_seconds()

    def others(self) -> float:
        """Cores that processes other than this one and its children, if they have ended, used on average."""
        used = psutil.cpu_percent() / 100 * _cores()
        return max(0.0, used - (_own_seconds() - self.own) / (time.perf_counter() - self.start))


def remark(*others: float) -> str:
    """Say that the machine was busy; nothing where it was not.

    Args:
        *others: Cores that other processes used, in one measurement or in several.
    """
    most = max(others, default=0.0)
    if most < BUSY:
        return ""
    share = f"{'up to ' * (len(others) > 1)}{most:.1f} of {_cores()} cores"
    return f"the machine was busy: other processes used {share}; figures are of a shared machine"


def machine(device: str, threads: int, precision: str) -> dict[str, Any]:
    """Describe what figures are measured on, and with which device, threads of PyTorch and precision of the project."""
    kind = resolve_device(device)
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "device": torch.cuda.get_device_name() if kind.type == "cuda" else kind.type,
        "torch_threads": threads,
        "precision": str(resolve_precision(precision, kind)).removeprefix("torch."),
    }


def _own_seconds() -> float:
    """Processor time of this process, and of its descendants that have ended [s]."""
    return sum(os.times()[:4])


def _cores() -> int:
    return psutil.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
