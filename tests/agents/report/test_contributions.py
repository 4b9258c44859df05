"""What each part contributes: which rows are compared, and the differences of their curves."""

import csv
import dataclasses

import numpy as np
import pytest

from agents.config.train import LearnerConfig, PotentialConfig
from agents.report.contributions import contributions, contributions_table, success_after, success_over
from agents.report.outcome import read_outcome
from tests.agents.report.test_compare import finished_run


def outcomes(directory, curves, steps=(10, 20), **settings):
    """Outcomes of finished runs with these evaluations."""
    made = []
    for seed, rates in enumerate(curves):
        run = directory / f"some-seed{seed}"
        finished_run(run, rates[-1], **settings)
        with (run / "progress.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([("step", "eval/success_rate"), *zip(steps, rates, strict=True)])
        made.append(dataclasses.replace(read_outcome(run), environment_steps=steps[-1]))
    return made


def compared(groups):
    return {(one.part, one.present, one.absent) for one in contributions(groups)}


def test_success_over_the_steps_is_the_area_below_the_curve(tmp_path):
    (run,) = outcomes(tmp_path, [(0.2, 1.0, 0.6)], steps=(10, 15, 40))
    for steps in (5, 10, 12, 15, 30, 40):
        fine = np.linspace(0, steps, 100_001)
        curve = np.interp(fine, [0, 10, 15, 40], [0, 0.2, 1.0, 0.6])
        assert success_over(run, steps) == pytest.approx(curve.mean(), abs=1e-4)
        assert success_after(run, steps) == pytest.approx(curve[-1])


def test_rows_are_compared_that_differ_in_a_part(tmp_path):
    methods = ("buffer", "sparse", "buffer+potential", "potential+annealing", "gail", "potential+annealing+guide")
    groups = {name: outcomes(tmp_path / name, [(0.5, 1.0)], method=name) for name in methods}
    assert compared(groups) == {
        ("buffer", "buffer", "sparse"),
        ("potential", "buffer+potential", "buffer"),
        ("potential+annealing", "potential+annealing", "sparse"),
        ("potential+annealing+guide", "potential+annealing+guide", "sparse"),
        ("guide", "potential+annealing+guide", "potential+annealing"),
    }
    groups["clouds"] = outcomes(
        tmp_path / "clouds", [(0.5, 1.0)], method="buffer+potential+annealing", obs="pointcloud"
    )
    assert len(compared(groups)) == 5  # another task


def test_rows_are_compared_that_differ_in_one_setting(tmp_path):
    method = "buffer+potential+annealing"
    settings = {
        "product": {},
        "sum": {"potential": PotentialConfig(combine="sum")},
        "wide": {"potential": PotentialConfig(combine="sum", radius=0.1)},
        "fast": {"learner": LearnerConfig(learning_rate=1e-2), "potential": PotentialConfig(combine="sum", radius=0.2)},
    }
    groups = {name: outcomes(tmp_path / name, [(0.5, 1.0)], method=method, **of) for name, of in settings.items()}
    assert compared(groups) == {
        ("potential.combine product / sum", "product", "sum"),
        (f"potential.radius {PotentialConfig().radius} / 0.1", "sum", "wide"),
    }
    before = compared(groups)
    groups["unshaped"] = outcomes(tmp_path / "unshaped", [(0.5, 1.0)], method="buffer")
    assert compared(groups) - before == {
        ("potential+annealing", name, "unshaped") for name in settings if name != "fast"
    }


def test_the_differences_are_those_after_the_steps_that_both_have(tmp_path):
    curves, others = [(0.2, 0.8), (0.4, 1.0)], [(0.0, 0.2, 0.9), (0.0, 0.6, 1.0)]
    with_it = outcomes(tmp_path / "with", curves, method="buffer+potential")
    without = outcomes(tmp_path / "without", others, steps=(10, 20, 30), method="buffer")
    (one,) = contributions({"with": with_it, "without": without})
    assert (one.part, one.task, one.steps) == ("potential", "state, 1 grid", 20)
    assert one.final.value == pytest.approx(0.9 - 0.4) and one.final.low < one.final.value < one.final.high
    areas = [np.mean([0.5 * first, 0.5 * (first + second)]) for first, second, *_ in (*curves, *others)]
    assert one.mean.value == pytest.approx(np.mean(areas[:2]) - np.mean(areas[2:]))
    (cells,) = contributions_table({"with": with_it, "without": without}).rows
    assert cells[:5] == ["potential", "state, 1 grid", "with", "without", "20"] and cells[5] == str(one.final)
    assert not contributions_table({"with": with_it}).rows
