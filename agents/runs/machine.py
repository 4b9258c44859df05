"""Description of the machine, and its load by other processes during a measurement."""

import os
import platform
import time
from pathlib import Path
from typing import Any

import psutil
import torch

from agents.sac.device import resolve_device, resolve_precision

BUSY = 0.2  # load by other processes above which a remark is added to the results [cores]


class Occupation:
    """Load by other processes, measured from construction on."""

    def __init__(self) -> None:
        psutil.cpu_percent()  # starts the interval that the next call measures
        self.start, self.own = time.perf_counter(), _own_seconds()

    def others(self) -> float:
        """Return the mean load by processes other than this one and its ended children [cores]."""
        used = psutil.cpu_percent() / 100 * _cores()
        return max(0.0, used - (_own_seconds() - self.own) / (time.perf_counter() - self.start))


def remark(*others: float) -> str:
    """Return a remark that the machine was busy, or an empty string.

    Args:
        *others: Load by other processes in each measurement [cores].
    """
    most = max(others, default=0.0)
    if most < BUSY:
        return ""
    share = f"{'up to ' * (len(others) > 1)}{most:.1f} of {_cores()} cores"
    return f"the machine was busy: other processes used {share}; figures are of a shared machine"


def machine(device: str, threads: int, precision: str) -> dict[str, Any]:
    """Describe the machine, the device, the number of PyTorch threads and the precision of the project's learner."""
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
    """Return the processor time of this process and of its ended descendants [s]."""
    return sum(os.times()[:4])


def _cores() -> int:
    return psutil.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
