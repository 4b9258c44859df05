"""Time to the solved task, over seeds: ``python -m agents.benchmark --solve``."""

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from agents import runs
from agents.benchmark.machine import Occupation, machine, remark
from agents.benchmark.solved import read_run, summarise, table
from agents.config.file import flat
from agents.config.train import Observation, TrainConfig, check, run_name
from agents.launch.local import is_finished, start_or_resume
from agents.report.curves import draw_seeds
from agents.train import command, describe_shares, parse
from envs.files import check_replaceable, read_regular, write_text
from envs.ranges import Range, check_ranges

SETTINGS = ("--evaluation.every", "2000", "--evaluation.episodes", "50")
"""Settings of every run beside the defaults: often enough for the time, and episodes enough for 95 %."""
OWN = ("obs", "grids", "seed", "out", "resume", "stop_at_success")  # what the benchmark itself decides
REPORT = ("results.json", "curves.png")
OTHERS = "others.txt"  # in a run directory: cores that other processes used
STANDARD_ERROR = 2


@dataclass(frozen=True)
class SolveConfig:
    """Measure how long a training takes until its task is solved, observation by observation and seed by seed.

    Solved: two consecutive evaluations at or above 95 % (states) or 90 % (clouds). The time is that on the wall, from
    the first environment step to the moment when the second result is known, evaluations included. Trainings have the
    default settings and 50 episodes of evaluation every 2000 steps, and go one after another; finished ones in --out
    are reused, interrupted ones continued, their pause not counted. What follows " -- " goes to agents.train:
    --solve --seeds 5 -- --potential.combine sum --learner.guided-share 0
    """

    seeds: Annotated[int, Range(1, 1000)] = 3
    """Seeds 0 … N − 1 of each observation."""
    obs: Literal["state", "pointcloud", "both"] = "both"
    """Observation of the agent, or both."""
    grids: Literal[1, 2, 3] = 1
    """Active reset grids, with one demonstration each."""
    out: Path = Path("solve")
    """Directory of the runs, of results.json and curves.png."""
    json: bool = False
    """Print one JSON object, that of results.json, on standard output and nothing else there."""


def main(arguments: list[str]) -> None:
    """Measure what the command line names, and print and write the results.

    Raises:
        ValueError: Settings that do not fit together, a run with others in the directory, or trainings that failed.
    """
    place = arguments.index("--") if "--" in arguments else len(arguments)
    config = tyro.cli(SolveConfig, args=arguments[:place], prog="python -m agents.benchmark --solve")
    check_ranges(config)
    trainings = _trainings(config, arguments[place + 1 :])
    for name in REPORT:  # before the trainings, which take hours
        check_replaceable(config.out / name)
    for training in trainings:
        _check_settings(training)
    config.out.mkdir(parents=True, exist_ok=True)
    _run_missing(trainings)
    found = [read_run(_directory(training)) | {"others": _others(_directory(training))} for training in trainings]
    by_observation = {training.obs: [run for run in found if run["obs"] == training.obs] for training in trainings}
    summaries = {obs: summarise(of_one) for obs, of_one in by_observation.items()}
    results = {
        "observations": summaries,
        "runs": found,
        "commands": [command(training) for training in trainings],
        "machine": machine(trainings[0].device, trainings[0].threads, trainings[0].learner.precision),
    }
    _print(config, summaries, results)
    write_text(config.out / "results.json", json.dumps(results, indent=2) + "\n")
    draw_seeds(
        {obs: [tuple(run["curve"].values()) for run in of_one] for obs, of_one in by_observation.items()},
        config.out / "curves.png",
    )
    print(f"wrote {config.out}: {', '.join(sorted(REPORT))}", file=sys.stderr if config.json else sys.stdout)


def _trainings(config: SolveConfig, settings: list[str]) -> list[TrainConfig]:
    """What is trained: the defaults, with what is given beside them.

    Raises:
        ValueError: A setting is out of range, or decided by the benchmark.
    """
    observations: tuple[Observation, ...] = ("state", "pointcloud") if config.obs == "both" else (config.obs,)
    made = []
    for obs in observations:
        own = ["--obs", obs, "--grids", str(config.grids)]
        training = parse([*own, *SETTINGS, *settings])
        changed = [name for name in OWN if getattr(training, name) != getattr(parse(own), name)]
        if changed:
            flag = f"--{changed[0].replace('_', '-')}"
            raise ValueError(f"{flag} after -- is not taken: the benchmark decides {', '.join(OWN)}")
        check(training)
        named = [replace(training, seed=seed) for seed in range(config.seeds)]
        made += [replace(one, out=config.out / run_name(one)) for one in named]
    return made


def _directory(training: TrainConfig) -> Path:
    assert training.out is not None
    return training.out


def _check_settings(training: TrainConfig) -> None:
    """Refuse a run of other settings under the same name, whose time would count as that of these.

    Raises:
        ValueError: A setting differs; names it.
    """
    directory = _directory(training)
    if not (directory / runs.CONFIG).exists():
        return
    wanted, has = flat(training), flat(runs.read_config(directory))
    other = [f"{name} {has[name]} ({wanted[name]})" for name in wanted if name != "out" and has[name] != wanted[name]]
    if other:
        raise ValueError(f"{directory} was trained with other settings: {', '.join(other)}; choose another --out")


def _run_missing(trainings: list[TrainConfig]) -> None:
    """Start or continue every run that is not finished, one after another; one that fails does not stop the others.

    Raises:
        ValueError: Runs failed; names their directories.
    """
    failed = []
    for training in trainings:
        directory = _directory(training)
        if is_finished(directory, training.steps):
            continue
        words = start_or_resume(training, directory)
        print("running", shlex.join(words[1:]), file=sys.stderr, flush=True)
        occupation = Occupation()
        process = subprocess.Popen(words, stdout=STANDARD_ERROR)
        try:
            status = process.wait()
        except KeyboardInterrupt:  # which the run has got too, and writes its checkpoint
            process.wait()
            raise
        if status != 0:
            failed.append(str(directory))
            print(f"failed with status {status}: {directory}", file=sys.stderr)
            continue
        write_text(directory / OTHERS, f"{occupation.others():.2f}\n")
    if failed:
        raise ValueError(f"{', '.join(failed)} failed; the same command tries again what is missing")


def _others(directory: Path) -> float | None:
    """Cores that other processes used during a run, None where that was not measured."""
    path = directory / OTHERS
    try:
        return float(read_regular(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); remove it") from error


def _print(config: SolveConfig, summaries: dict[Observation, dict[str, Any]], results: dict[str, Any]) -> None:
    if config.json:
        print(json.dumps(results))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table(summaries))
    lines = []
    for obs, found in summaries.items():
        lines += [f"{obs}, {line}" for line in describe_shares(found["shares"]).splitlines()]
    where = results["machine"]
    lines.append(f"{where['cpu']}, {where['cores']} cores, {where['device']}, {where['precision']}")
    others = [run["others"] for run in results["runs"] if run["others"] is not None]
    lines += filter(None, [remark(*others)])
    console.print("\n".join(lines), highlight=False)
