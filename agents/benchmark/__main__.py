"""Benchmark of the project and the stock stack, stage by stage: ``python -m agents.benchmark``."""

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

import tyro

from agents.config.presets import PAPER
from envs.command import one_line_errors
from envs.ranges import Range, check_range


@dataclass(frozen=True)
class BenchmarkConfig:
    """Measure physics, steps, resets, images, clouds, Φ, updates and training of this project and of the stock stack.

    The stock stack consists of robosuite's environment, controller and cameras, Open3D, and Stable-Baselines3's SAC
    with a plain PointNet of the same layers. Both learners follow the paper: 2 gradient steps with batch size 512 per
    environment step. Only the project's training steps include the computation of Φ.
    """

    json: bool = False
    """Print one JSON object, and nothing else, on standard output."""
    quick: bool = False
    """Take fewer and shorter samples."""
    threads: int = 1
    """CPU threads of the project and of the stock stack."""
    precision: str = PAPER.learner.precision
    """Number format of the project's learner: auto, float32 or bfloat16."""
    renderer: str = "ray"
    """Renderer of the project: ray or gl. The stock stack uses OpenGL."""
    device: str = "auto"
    """Device of both learners: auto, cpu or cuda."""


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.benchmark``."""
    config = tyro.cli(BenchmarkConfig, args=arguments, prog="python -m agents.benchmark")
    check_range("threads", config.threads, Range(1, 1024))
    _limit_threads(config.threads)
    from rich.console import Console

    import envs  # noqa: F401 (first: it silences the messages of robosuite's import)
    from agents.benchmark.report import conclusion, summarise, table
    from agents.runs.machine import Occupation

    with contextlib.redirect_stdout(sys.stderr):
        settings = _settings(config)
        occupation = Occupation()
        stages, times = _measure(settings)
    summary = summarise(times, settings, occupation.others())
    if config.json:
        print(json.dumps(summary))
        return
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table(stages, times))
    console.print(conclusion(summary), highlight=False)


def _limit_threads(threads: int) -> None:
    """Set the thread variables before the libraries are loaded; with 0, llvmpipe renders in the calling thread only."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["LP_NUM_THREADS"] = str(threads if threads > 1 else 0)


def _settings(config: BenchmarkConfig) -> Any:
    """Make the settings, and check that device, precision and renderer are available.

    Raises:
        ValueError: One of them is not available; the message lists the available ones.
    """
    import torch

    from agents.benchmark.stages import Settings
    from agents.benchmark.timing import Timer
    from agents.sac.device import resolve_device, resolve_precision

    device = resolve_device(config.device)
    resolve_precision(config.precision, device, "--precision")
    _check_renderer(config.renderer)
    repeats, seconds = (3, 0.05) if config.quick else (7, 0.5)
    torch.set_num_threads(config.threads)
    return Settings(Timer(device.type, config.threads, repeats, seconds), config.renderer, config.precision)


def _check_renderer(renderer: str) -> None:
    import mujoco

    from perception.rendering import RENDERERS, make_renderer

    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><camera name="eye"/><body name="ball"><geom size="1"/></body></worldbody></mujoco>'
    )
    available, reason = [], ""
    for name in RENDERERS:
        probe = make_renderer(name, model, "eye", "ball", 8, 8)
        try:
            probe.render(mujoco.MjData(model))
            available.append(name)
        except RuntimeError as error:
            reason = f" ({error})"
        probe.close()
    if renderer not in available:
        raise ValueError(f"--renderer {renderer}: not available here; choose from {', '.join(available)}{reason}")
    if "gl" not in available:
        raise ValueError(f"the stock stack has no other renderer than OpenGL{reason}")


def _measure(settings: Any) -> tuple[list[Any], dict[str, dict[str, float]]]:
    """Measure all stages, and print each result."""
    from agents.benchmark.stages import environment_stages, potential_stages
    from agents.benchmark.training import training_stages

    stages, times = [], {}
    for part in (environment_stages, potential_stages, training_stages):
        for stage in part(settings):
            times[stage.name] = found = settings.timer.measure(stage.works)
            figures = ", ".join(f"{side} {1000 * seconds:.2f} ms" for side, seconds in found.items())
            print(f"{stage.label}: {figures}", flush=True)
            stages.append(stage)
    return stages, times


if __name__ == "__main__":
    main()
