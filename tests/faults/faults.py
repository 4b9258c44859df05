"""Three kinds of faults. Each function does some, checks what follows, and returns counts."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from shaping.tensors import read_tensors
from tests.faults.commands import Fault, run_evaluate, run_train
from tests.faults.equality import assert_equal, assert_same_end

OPERATIONS = 320  # of a short training on its files, about


def random_kills(number: int, rng: np.random.Generator) -> list[Fault]:
    """Kills before a random operation on files, and at a random time, which may lie within one."""
    operations = [Fault(operation=int(rng.integers(1, OPERATIONS))) for _ in range(number)]
    return [fault if index % 2 == 0 else Fault(rng.uniform(0, 6)) for index, fault in enumerate(operations)]


def kills(folder: Path, whole: Path, faults: Iterable[Fault]) -> Counter:
    """Kill trainings and resume them until they end.

    After each kill an evaluation works or says why not; at the end everything is as in an uninterrupted run.
    """
    counts: Counter = Counter()
    directory = folder / "killed-0"
    for attempt, fault in enumerate([*faults, Fault()], 1):
        before = _half_written(directory)
        outcome = run_train(directory, fault)
        if outcome.code == -9:
            counts["kills"] += 1
            counts["  in the middle of writing"] += bool(_half_written(directory) - before)
            evaluation = run_evaluate(directory)
            assert evaluation.clear, evaluation
            counts["  then evaluated" if evaluation.works else "  then nothing to evaluate yet"] += 1
            continue
        assert outcome.works, (fault, outcome)
        assert_same_end(whole, directory)
        counts["runs that ended like an uninterrupted one"] += 1
        directory = folder / f"killed-{attempt}"
    return counts


def damages(folder: Path, whole: Path, number: int, rng: np.random.Generator, names: str = "*") -> Counter:
    """Damage one file of a run directory at a time; a resume and an evaluation work, or say in one line why not.

    A resume that works ends with the weights of the undamaged run. `names` is a pattern of the files.
    """
    counts: Counter = Counter()
    stopped = folder / "stopped"
    run_train(stopped, Fault(operation=OPERATIONS // 2))
    while number:
        original = (whole, stopped)[number % 2]
        directory = folder / "damaged"
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(original, directory)
        files = sorted(path for path in directory.rglob(names) if path.is_file() and path.stat().st_size)
        path, how = files[rng.integers(len(files))], ("cut", "flip", "remove")[rng.integers(3)]
        _damage(path, how, rng)
        what = f"{how} {path.relative_to(directory)}"
        for name, command in (("evaluate", run_evaluate), ("resume", run_train)):
            outcome = command(directory)
            assert outcome.clear, f"{what}: {outcome}"
            counts[f"{name}: {'works' if outcome.works else 'one line'}"] += 1
        if outcome.works and (directory / "result.json").exists():
            _assert_same_weights(whole, directory, what)
        counts["damages"] += 1
        number -= 1
    return counts


def full_disks(folder: Path, whole: Path, number: int, rng: np.random.Generator) -> Counter:
    """Let the disk be full during a training; it stops with one line, and goes on when there is room."""
    counts: Counter = Counter()
    needed = sum(path.stat().st_size for path in whole.rglob("*"))
    for attempt in range(number):
        place = folder / f"small-{attempt}"
        with small_file_system(place, int(rng.uniform(0.02, 0.9) * needed)) as (grow, mounted):
            directory = place / "run"
            fault = Fault() if mounted else Fault(largest_file=int(rng.uniform(1e3, 5e4)))
            outcome = run_train(directory, fault)
            assert outcome.clear, (fault, outcome)
            counts["full disks" if mounted else "files that may not grow"] += 1
            counts["  stopped with one line"] += outcome.one_line
            evaluation = run_evaluate(directory)
            assert evaluation.clear, evaluation
            counts["  then evaluated" if evaluation.works else "  then nothing to evaluate yet"] += 1
            grow()
            outcome = run_train(directory)
            assert outcome.works, outcome
            assert_same_end(whole, directory)
            counts["  resumed to the end of an uninterrupted run"] += 1
    full = run_evaluate(whole, Fault(output=Path("/dev/full")))
    assert full.one_line, full
    counts["full standard outputs, one line"] += 1
    return counts


@contextmanager
def small_file_system(path: Path, size: int) -> Iterator[tuple]:
    """Yield a function that makes room, and whether there is such a file system; only root may mount one."""
    path.mkdir()
    options = f"size={size}"
    mounted = not subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], capture_output=True).returncode
    try:
        yield lambda: mounted and subprocess.run(["mount", "-o", "remount,size=64m", path], check=True), mounted
    finally:
        if mounted:
            subprocess.run(["umount", path], check=True)


def _half_written(directory: Path) -> set[tuple[Path, int]]:
    return {(path, path.stat().st_mtime_ns) for path in directory.rglob("*.partial")}


def _damage(path: Path, how: str, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    position = int(rng.integers(len(content)))
    content[position] ^= 1 << int(rng.integers(8))
    if how == "remove":
        path.unlink()
    else:
        path.write_bytes(content[:position] if how == "cut" else content)


def _assert_same_weights(whole: Path, directory: Path, what: str) -> None:
    assert_equal(read_tensors(whole / "policy.pt"), read_tensors(directory / "policy.pt"), what)
