"""Report of the benchmark: ratios, hours and the table of stages."""

import importlib.metadata
import platform
from typing import Any

from rich.table import Table

from agents.benchmark.stages import DEMONSTRATIONS, IMAGE_SIZE, Settings, Stage
from agents.benchmark.stock import IMAGE_SIZE as STOCK_IMAGE_SIZE
from agents.runs.machine import machine, remark
from envs.push.env import HORIZONS

Times = dict[str, dict[str, float]]  # by stage, then by "project" or "stock": seconds per call

PAPER_STEPS = 400_000  # environment steps of one run on clouds
PACKAGES = ("mujoco", "robosuite", "open3d", "stable-baselines3", "torch", "numpy")
HORIZON = HORIZONS["push-slot"]


def summarise(times: Times, settings: Settings, others: float) -> dict[str, Any]:
    """Return all figures as plain data: ratios to the stock stack and to physics, hours, times, machine, versions.

    Args:
        times: Times of all stages.
        settings: Settings of the measurement.
        others: Load by other processes during the measurement [cores].
    """
    steps = training_steps(times)
    trained, frozen = steps["pointcloud"], steps["pointcloud_frozen"]["project"]
    physics = times["physics"]["project"]
    return {
        "state_step_ratio": _ratio(times["state_step"]),
        "pointcloud_step_ratio": _ratio(times["pointcloud_step"]),
        "reset_ratio": _ratio(times["reset"]),
        "sac_state_ratio": _ratio(times["sac_state"]),
        "sac_pointcloud_ratio": _ratio(times["sac_pointcloud"]),
        "train_state_ratio": _ratio(steps["state"]),
        "train_pointcloud_ratio": _ratio(trained),
        "train_pointcloud_frozen_ratio": trained["stock"] / frozen,
        "sac_pointcloud_shared_ratio": _ratio(times["sac_pointcloud_shared"]),
        "train_pointcloud_shared_ratio": _ratio(steps["pointcloud_shared"]),
        "sac_pointcloud_both_frozen_ratio": _ratio(times["sac_pointcloud_frozen"]),
        "train_pointcloud_both_frozen_ratio": _ratio(steps["pointcloud_frozen"]),
        "state_step_of_physics": physics / times["state_step"]["project"],
        "pointcloud_step_of_physics": physics / times["pointcloud_step"]["project"],
        "potential_many_ratio": {
            obs: times[f"potential_{obs}_{DEMONSTRATIONS}"]["project"] / times[f"potential_{obs}_1"]["project"]
            for obs in ("state", "pointcloud")
        },
        "train_steps_per_second": {
            name: {side: 1.0 / seconds for side, seconds in sides.items()} for name, sides in steps.items()
        },
        "hours": {
            "environment_steps": PAPER_STEPS,
            **{side: PAPER_STEPS * seconds / 3600 for side, seconds in trained.items()},
            "project_frozen": PAPER_STEPS * frozen / 3600,
        },
        "milliseconds": {n: {side: 1000 * t for side, t in sides.items()} for n, sides in times.items()},
        "image_size": {"project": IMAGE_SIZE, "stock": STOCK_IMAGE_SIZE},
        "renderer": settings.renderer,
        "clock": settings.timer.clock,
        "machine": machine(settings.timer.device, settings.timer.threads, settings.precision) | {"others": others},
        "versions": {"python": platform.python_version()} | {n: importlib.metadata.version(n) for n in PACKAGES},
    }


def training_steps(times: Times) -> Times:
    """Return the duration of one training step, including its share of the episode's reset [s]."""
    reset = {"state": times["reset"], "pointcloud": times["pointcloud_reset"]}
    reset |= {f"pointcloud_{encoder}": reset["pointcloud"] for encoder in ("shared", "frozen")}
    return {
        name: {side: t + reset[name][side] / HORIZON for side, t in times[f"train_{name}"].items()} for name in reset
    }


def table(stages: list[Stage], times: Times) -> Table:
    """Make the table of stages, with their share of a training step with the same observation."""
    steps, physics = training_steps(times), times["physics"]["project"]
    laid = Table(title="milliseconds of one call, medians")
    laid.add_column("stage")
    for heading in ("project", "stock", "stock / project", "share of a training step", "physics / project"):
        laid.add_column(heading, justify="right")
    for stage in stages:
        sides = times[stage.name]
        ours = sides.get("project")
        share = "" if stage.part_of is None or ours is None else ours * stage.times / steps[stage.part_of]["project"]
        laid.add_row(
            stage.label + (f", {round(1 / stage.times)} steps apart" if stage.times < 1 else ""),
            *(f"{1000 * sides[side]:.2f}" if side in sides else "" for side in ("project", "stock")),
            f"{_ratio(sides):.1f}" if len(sides) == 2 else "",
            f"{share:.1%}" if share != "" else "",
            f"{physics / ours:.0%}" if ours and stage.name.endswith("step") else "",
        )
    return laid


def conclusion(summary: dict[str, Any]) -> str:
    """Summarise throughput, hours of a training, machine and versions in a few lines."""
    hours, rates = summary["hours"], summary["train_steps_per_second"]
    lines = [
        f"{where}: {_listed(rates[name])}"
        for name, where in (
            ("state", "training on states"),
            ("pointcloud", "training on clouds"),
            ("pointcloud_shared", "training on clouds, the stock learner's encoder shared"),
            ("pointcloud_frozen", "training on clouds, features stored, the stock learner's encoder frozen"),
        )
    ]
    lines.append(
        f"{hours['environment_steps']} steps on clouds: {hours['project']:.1f} h, with features stored "
        f"{hours['project_frozen']:.1f} h; stock {hours['stock']:.1f} h"
    )
    where, images = summary["machine"], summary["image_size"]
    lines.append(
        f"{where['cpu']}, {where['cores']} cores, {where['device']}, {where['torch_threads']} threads, "
        f"{where['precision']}; {summary['clock']}; load {where['load']:.1f}; "
        f"images {images['project']} pixels wide, stock {images['stock']}"
    )
    lines.append(", ".join(f"{name} {version}" for name, version in summary["versions"].items()))
    lines += filter(None, [remark(where["others"])])
    return "\n".join(lines)


def _listed(rates: dict[str, float]) -> str:
    return ", ".join(f"{side} {rate:.1f} steps/s" for side, rate in rates.items())


def _ratio(sides: dict[str, float]) -> float:
    return sides["stock"] / sides["project"]
