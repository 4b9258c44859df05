"""The README's tables of methods and of what each part contributes, and its commands, are those of the shipped runs."""

import json
import math
import shlex
from pathlib import Path

import pytest
import tyro

from agents import runs
from agents.compare import main
from agents.config import TrainConfig
from agents.config.file import to_json
from agents.config.methods import BC_STEPS
from agents.config.presets import PRESETS
from agents.launch.matrix import CompareConfig, found_runs, plan
from agents.report.contributions import COMPARED_PARTS, contributions
from agents.report.outcome import Groups, Outcome, read_outcome
from agents.report.statistics import interquartile_mean
from agents.report.table import median_and_worst, paper_of, rates

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "assets/results/campaign"
HEADING = (
    "| method | observation, grids | seeds | training steps | success, interquartile mean [95 % interval] (worst) [%] "
    "| solved | steps until solved, median / worst | steps to the goal | mean [%] | paper [%] |"
)
COLUMNS = ("state, 1 grid", "state, 2 grids", "state, 3 grids", "pointcloud, 1 grid")
PARTS_HEADING = f"| part | compared with | {' | '.join(COLUMNS)} |"


@pytest.fixture(scope="module")
def groups() -> Groups:
    return {label: [read_outcome(one) for one in found] for label, found in found_runs(RUNS).items()}


def shown_below(heading: str) -> list[str]:
    """Return the rows of the README's table with this heading."""
    lines = (ROOT / "README.md").read_text().splitlines()
    start = lines.index(heading) + 2
    return lines[start : lines.index("", start)]


def test_the_table_of_methods_is_that_of_the_shipped_runs(groups):
    made = methods_table(groups)
    assert shown_below(HEADING) == made, "the table of these runs is\n" + "\n".join(made)


def test_the_table_of_parts_is_that_of_the_shipped_runs(groups):
    made = parts_table(groups)
    assert shown_below(PARTS_HEADING) == made, "the table of these runs is\n" + "\n".join(made)


def test_the_commands_train_the_shipped_runs():
    trained = commanded()
    shipped = {one.name: one for found in found_runs(RUNS).values() for one in found}
    assert shipped.keys() == trained.keys()
    for name, directory in shipped.items():
        ours, theirs = (settings(config) for config in (trained[name], runs.read_config(directory)))
        assert ours == theirs, f"the settings of {name} are not those of its command"


@pytest.mark.slow
def test_the_report_of_the_shipped_runs_has_the_readme_s_figures_in_less_than_ten_megabytes(tmp_path):
    """The command that the README names."""
    main(["--report-only", "--runs", str(RUNS), "--out", str(tmp_path)])
    assert (tmp_path / "report.html").stat().st_size < 10e6
    report = (tmp_path / "report.md").read_text()
    for shown in shown_below(HEADING):
        mean = shown.split(" | ")[4].rpartition(" (")[0]
        assert f" | {mean} | " in report


def commanded() -> dict[str, TrainConfig]:
    """Return the trainings of the README's commands above the table of methods, by the names of their directories."""
    text = (ROOT / "README.md").read_text()
    block = text[: text.index(HEADING)].rpartition("```bash")[2]
    trained: dict[str, TrainConfig] = {}
    for _, _, module, *words in map(shlex.split, filter(lambda line: line.startswith("python"), block.splitlines())):
        if module == "agents.compare":
            own, _, further = " ".join(words).partition(" -- ")
            for of_label in plan(tyro.cli(CompareConfig, args=own.split()), further.split()).values():
                trained |= {directory.name: config for directory, config in of_label.items()}
    return trained


def settings(config: TrainConfig) -> dict[str, object]:
    """Return the settings that the agent of a training depends on."""
    data = json.loads(to_json(config))
    for name in ("out", "parallel", "evaluation"):
        del data[name]
    return data


def methods_table(groups: Groups) -> list[str]:
    """Return the rows of the README's table of methods."""
    return [row(outcomes, runs.read_config(Path(outcomes[0].directory))) for outcomes in groups.values()]


def parts_table(groups: Groups) -> list[str]:
    """Return the rows of the README's table of parts, without those of a single run."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in contributions(groups):
        if not math.isnan(one.final.low):
            present, absent = (groups[label][0] for label in (one.present, one.absent))
            without = method(runs.read_config(Path(absent.directory)), absent.demonstrations)
            form = runs.read_config(Path(present.directory)).potential.combine
            part = f"{one.part}, {form}" * ("potential" in one.part.split("+")) or one.part
            cell = f"{one.mean}; {one.final} ({one.steps // 1000}k)"
            cells.setdefault((part, without), {})[one.task] = cell
    ordered = sorted(cells, key=lambda key: (*COMPARED_PARTS, key[0]).index(key[0].partition(", ")[0]))
    return [f"| {' | '.join((*key, *(cells[key].get(task, '') for task in COLUMNS)))} |" for key in ordered]


def row(outcomes: list[Outcome], config: TrainConfig) -> str:
    """Return the README's row of the seeds of a method."""
    first = outcomes[0]
    steps = [run.mean_steps for run in outcomes if run.mean_steps is not None]
    taken = sorted({run.environment_steps for run in outcomes})
    budget = "–".join(f"{count // 1000}k" for count in sorted({taken[0], taken[-1]}))
    paper = paper_of(first)
    cells = (
        method(config, first.demonstrations),
        f"{first.obs}, {first.grids}",
        str(len(outcomes)),
        budget if taken[-1] else f"{BC_STEPS // 1000}k, offline",
        f"{interquartile_mean(rates(outcomes))} ({100 * min(run.success_rate for run in outcomes):.0f})",
        str(sum(run.solved_steps is not None for run in outcomes)),
        median_and_worst([run.solved_steps for run in outcomes]),
        f"{sum(steps) / len(steps):.1f}" if steps else "",
        f"{100 * sum(run.success_rate for run in outcomes) / len(outcomes):.1f}",
        f"{paper:g}" if paper is not None else "",
    )
    return f"| {' | '.join(cells)} |"


def method(config: TrainConfig, demonstrations: int) -> str:
    """Return how the README names a method with its settings."""
    parts = [config.method]
    if "potential" in config.method:
        parts.append(config.potential.combine)
    if (
        "annealing" in config.method
        and config.learner.annealing_steps != PRESETS[config.preset][config.obs].learner.annealing_steps
    ):
        parts.append(f"annealing over {config.learner.annealing_steps // 1000}k steps")
    if config.preset != "default":
        parts.append(f"`--preset {config.preset}`")
    if config.method == "bc":
        parts.append(f"{demonstrations} demonstration{'s' * (demonstrations > 1)}")
    return ", ".join(parts)
