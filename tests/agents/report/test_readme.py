"""The README's table of methods is that of the shipped runs."""

from pathlib import Path

from agents import runs
from agents.config import TrainConfig
from agents.config.presets import PRESETS
from agents.launch.matrix import found_runs
from agents.report.outcome import Outcome, read_outcome
from agents.report.statistics import interquartile_mean
from agents.report.table import median_and_worst, paper_of, rates

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "assets/results/campaign"
HEADING = (
    "| method | observation, grids | seeds | training steps | success, interquartile mean [95 % interval] (worst) [%] "
    "| solved | steps until solved, median / worst | steps to the goal | mean [%] | paper [%] |"
)


def test_the_table_is_that_of_the_shipped_runs():
    lines = (ROOT / "README.md").read_text().splitlines()
    start = lines.index(HEADING) + 2
    shown = lines[start : lines.index("", start)]
    made = [
        row([read_outcome(one) for one in found], runs.read_config(found[0])) for found in found_runs(RUNS).values()
    ]
    assert shown == made, "the table of these runs is\n" + "\n".join(made)


def row(outcomes: list[Outcome], config: TrainConfig) -> str:
    """Return the README's row of the seeds of a method."""
    first = outcomes[0]
    steps = [run.mean_steps for run in outcomes if run.mean_steps is not None]
    taken = sorted({run.environment_steps for run in outcomes})
    paper = paper_of(first)
    cells = (
        method(config, first.demonstrations),
        f"{first.obs}, {first.grids}",
        str(len(outcomes)),
        "–".join(f"{count // 1000}k" for count in sorted({taken[0], taken[-1]})) if taken[-1] else "offline",
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
    if config.learner.annealing_steps != PRESETS[config.preset][config.obs].learner.annealing_steps:
        parts.append(f"annealing over {config.learner.annealing_steps // 1000}k steps")
    if config.preset != "default":
        parts.append(f"`--preset {config.preset}`")
    if config.method == "bc":
        parts.append(f"{demonstrations} demonstration{'s' * (demonstrations > 1)}")
    return ", ".join(parts)
