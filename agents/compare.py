"""Compare observations and methods: ``python -m agents.compare --obs state pointcloud --seeds 3``.

Arguments after ``--`` are settings of every training: ``-- --potential.combine sum``.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import tyro

from agents import runs
from agents.config import TrainConfig
from agents.config.file import Settings
from agents.launch.local import run_locally
from agents.launch.matrix import CompareConfig, found_runs, plan
from agents.launch.ray_cluster import run_on_ray
from agents.launch.slurm import submit
from agents.launch.training import missing
from agents.report.commands import commands_section
from agents.report.contributions import contributions_table
from agents.report.curves import draw_curves, draw_trainings
from agents.report.encoders import encoder_rows, encoder_table, has_own_encoder
from agents.report.outcome import read_outcome
from agents.report.page import PICTURES, write_page
from agents.report.profiles import draw_profiles
from agents.report.table import PAPER, paper_of, results_table
from agents.runs.machine import remark
from agents.tasks.named import register_named
from envs.command import one_line_errors
from envs.files import check_replaceable, write_text
from envs.ranges import check_ranges

FIGURES = "".join(f"\n{caption}:\n\n![{caption}]({name})\n" for name, caption in PICTURES.items())
DRAWN = {"curves.png": draw_curves, "profiles.png": draw_profiles, "training.png": draw_trainings}
ENCODERS = "encoders.json"  # written where encoders are compared
REPORT = ("report.md", "report.html", "results.json", *DRAWN)


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.compare``."""
    arguments = sys.argv[1:] if arguments is None else arguments
    place = arguments.index("--") if "--" in arguments else len(arguments)
    config = tyro.cli(CompareConfig, args=arguments[:place], prog="python -m agents.compare")
    for name in ("obs", "method", "grids"):
        if getattr(config, name) == ():
            raise ValueError(f"--{name} is empty; name at least one")
    check_ranges(config)
    register_named([config.task], "--task")
    register_named(config.imports, "--imports")
    for name in (*REPORT, ENCODERS):  # checked before the trainings, which take hours
        check_replaceable(config.out / name)
    if config.slurm and config.launcher != "slurm":
        raise ValueError("--slurm has an effect with --launcher slurm only; leave it out")
    if config.report_only:
        if arguments[place:]:
            raise ValueError("settings after -- are those of trainings, and --report-only trains nothing")
        groups, trainings = found_runs(config.runs), {}
        check_reference(config, dict.fromkeys(runs.read_config(found[0]).method for found in groups.values()))
    else:
        check_reference(config, config.method)
        planned = plan(config, arguments[place + 1 :])
        groups = {label: list(runs_of_one) for label, runs_of_one in planned.items()}
        trainings = {directory: one for runs_of_one in planned.values() for directory, one in runs_of_one.items()}
        if not launch(missing(trainings), config):
            return
    outcomes = {label: [read_outcome(directory) for directory in found] for label, found in groups.items()}
    busy = remark(*(run.others for found in outcomes.values() for run in found if run.others is not None))
    compared = f"{PAPER}\n" * any(paper_of(run) is not None for found in outcomes.values() for run in found)
    remarks = compared + f"{busy}\n" * bool(busy) + _other_settings(trainings)
    encoders = encoder_rows(outcomes) if config.encoder or has_own_encoder(outcomes) else []
    made = [results_table(outcomes, config.reference), contributions_table(outcomes), encoder_table(encoders)]
    tables = [table for table in made if table.rows]
    text = "\n".join(table.markdown() for table in tables), f"\n{remarks}" * bool(remarks)
    try:
        config.out.mkdir(parents=True, exist_ok=True)
        write_text(config.out / "report.md", FIGURES.join(text) + commands_section(outcomes))
        data = {label: [asdict(run) for run in of_one] for label, of_one in outcomes.items()}
        write_text(config.out / "results.json", json.dumps(data, indent=2) + "\n")
        if encoders:
            write_text(config.out / ENCODERS, json.dumps([asdict(row) for row in encoders], indent=2) + "\n")
    finally:  # printed even if the report cannot be written
        print("".join(text), flush=True)
    for name, draw in DRAWN.items():
        draw(outcomes, config.out / name)
    write_page(config.out / "report.html", outcomes, tables, remarks)
    written = [*REPORT, *[ENCODERS] * bool(encoders)]
    print(f"wrote {config.out}: {', '.join(sorted(written))}")


def check_reference(config: CompareConfig, methods: Iterable[str]) -> None:
    """Check that a row has the method of the reference.

    Raises:
        ValueError: None has it; the message names those that there are.
    """
    if config.reference not in (None, *methods):
        raise ValueError(f"--reference {config.reference}: no row has this method; there are {', '.join(methods)}")


def launch(unfinished: dict[Path, TrainConfig], config: CompareConfig) -> bool:
    """Train what is missing, and return whether all of it has ended, which submitted jobs have not."""
    if not unfinished:
        return True
    if config.launcher == "slurm":
        jobs = submit(unfinished, config.runs / "slurm", config.slurm)
        print(
            f"submitted {len(jobs)} jobs, {jobs[0]} to {jobs[-1]}; when they have ended, the same command reports, "
            "and before that it would submit them again"
        )
        return False
    if config.launcher == "ray":
        run_on_ray(unfinished, config.address)
    else:
        run_locally(unfinished, config.parallel)
    return True


def _other_settings(trainings: dict[Path, TrainConfig]) -> str:
    """List the existing runs whose settings differ from the requested ones, in Markdown."""
    lines = []
    for directory, training in trainings.items():
        wanted, has = (Settings(one).get_state() for one in (training, runs.read_config(directory)))
        other = [f"{name} {has.get(name)} ({wanted[name]})" for name in wanted if has.get(name) != wanted[name]]
        lines += [f"- {directory}: {', '.join(other)}\n"] * bool(other)
    return "".join(["\nTrained with other settings than those compared:\n\n", *lines]) if lines else ""


if __name__ == "__main__":
    main()
