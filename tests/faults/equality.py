"""Whether two runs ended alike: bit by bit, all but clocks."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.runs.checkpoint import list_checkpoints
from agents.runs.log import read_progress
from shaping.tensors import read_tensors

CLOCKS = {"t", "clock", "eval/seconds"}


def assert_same_end(whole: Path, parts: Path) -> None:
    """Compare weights, optimisers, counters, random states, environment, statistics, buffer, curves and policies."""
    last, other = (list_checkpoints(directory / "checkpoints")[-1] for directory in (whole, parts))
    assert last.name == other.name
    assert_equal(read_tensors(last / "agent.pt"), read_tensors(other / "agent.pt"))
    rows = sorted(file.name for file in last.glob("*.npy"))
    assert "buffer.potentials.npy" in rows and "demonstrations.actions.npy" in rows
    for name in rows:
        np.testing.assert_array_equal(np.load(last / name), np.load(other / name), name)
    for name in ("best.pt", "policy.pt"):
        assert_equal(read_tensors(whole / name), read_tensors(parts / name), name)
    assert_equal(read_progress(whole / "progress.csv"), read_progress(parts / "progress.csv"))


def assert_equal(a: Any, b: Any, path: str = "") -> None:
    """Compare nested data with tensors."""
    assert type(a) is type(b), path
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a.keys() - CLOCKS:
            if not str(key).startswith("time/"):
                assert_equal(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_equal(x, y, f"{path}/{index}")
    else:
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, path
