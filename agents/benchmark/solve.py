"""Benchmark of the time to the solved task over several seeds: ``python -m agents.benchmark --solve``."""

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
"""Settings of every run: frequent evaluations to resolve the time, with enough episodes to resolve 95 %."""
OWN = ("obs", "grids", "seed", "out", "resume", "stop_at_success")  # settings that the benchmark sets itself
REPORT = ("results.json", "curves.png")
OTHERS = "others.txt"  # file in the run directory with the load by other processes [cores]
STANDARD_ERROR = 2


@dataclass(frozen=True)
class SolveConfig:
    """Measure the time until a training solves its task, for each observation and seed.

    The task is solved when two consecutive evaluations reach 95 % (states) or 90 % (clouds). The time is wall time from
    the first environment step until the second result is known, evaluations included. Trainings run one after another
    with the default settings and evaluate 50 episodes every 2000 environment steps. Finished runs in --out are reused;
    interrupted runs are resumed, and the interruption does not count. Arguments after " -- " are passed to
    agents.train: --solve --seeds 5 -- --method buffer+potential+annealing --potential.combine sum
    """

    seeds: Annotated[int, Range(1, 1000)] = 3
    """Seeds 0 … N − 1 of each observation."""
    obs: Literal["state", "pointcloud", "both"] = "both"
    """Observation of the agent, or both."""
    grids: Literal[1, 2, 3] = 1
    """Number of active reset grids; each has one demonstration."""
    out: Path = Path("solve")
    """Output directory of the runs, results.json and curves.png."""
    json: bool = False
    """Print the JSON object of results.json, and nothing else, on standard output."""


def main(arguments: list[str]) -> None:
    """Run the benchmark of a command line, and print and write the results.

    Raises:
        ValueError: Settings do not fit together, the directory holds a run with other settings, or trainings failed.
    """
    place = arguments.index("--") if "--" in arguments else len(arguments)
    config = tyro.cli(SolveConfig, args=arguments[:place], prog="python -m agents.benchmark --solve")
    check_ranges(config)
    trainings = _trainings(config, arguments[place + 1 :])
    for name in REPORT:  # checked before the trainings, which take hours
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
    """Return the configurations of the trainings: the defaults, changed by the given settings.

    Raises:
        ValueError: A setting is out of range, or is set by the benchmark itself.
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
    """Check that an existing run of the same name has the same settings, so that its time may be reused.

    Raises:
        ValueError: A setting differs; the message names it.
    """
    directory = _directory(training)
    if not (directory / runs.CONFIG).exists():
        return
    wanted, has = flat(training), flat(runs.read_config(directory))
    other = [f"{name} {has[name]} ({wanted[name]})" for name in wanted if name != "out" and has[name] != wanted[name]]
    if other:
        raise ValueError(f"{directory} was trained with other settings: {', '.join(other)}; choose another --out")


def _run_missing(trainings: list[TrainConfig]) -> None:
    """Start or resume every unfinished run, one after another; the others continue if one fails.

    Raises:
        ValueError: Runs failed; the message names their directories.
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
        except KeyboardInterrupt:  # the run receives it too and writes its checkpoint
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
    """Return the load by other processes during a run [cores], or None if it was not measured."""
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
