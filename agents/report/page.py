"""Report of a comparison as one HTML file that holds its pictures and videos."""

import base64
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import gymnasium as gym
import jinja2

from agents import runs
from agents.config import METHODS, TrainConfig
from agents.config.file import Settings
from agents.evaluation.film import film
from agents.progress import say
from agents.report.commands import commands
from agents.report.outcome import Groups, Outcome
from agents.report.table import Table
from agents.tasks import available_tasks, get_task
from envs.files import write_text
from perception.visualize.config import SLOT, VisualizeConfig

VIDEO, VIDEO_SEED = "episode.mp4", 4_000_000
"""File of one episode in a run directory, and the seed of its initial state, which differs from all others."""
TEMPLATE = Path(__file__).with_suffix(".html")
PICTURES = {
    "curves.png": "Success rate over environment steps and minutes: median and quartiles over the seeds",
    "profiles.png": "Share of the seeds with a final success rate above τ, and which rows are better",
    "training.png": "What the learner logs: median and quartiles over the seeds",
}
"""Pictures of the report with their captions."""


def write_page(path: Path, groups: Groups, tables: Sequence[Table], remarks: str) -> None:
    """Write the report; the pictures are read from its directory.

    For each row of the results it has one episode of a run with the median success rate: the video in the run
    directory, which is made if the directory has a policy. For each setting of a potential it has a map of Φ.

    Args:
        path: File.
        groups: Outcomes of the seeds by label.
        tables: Tables, that of the results first.
        remarks: Text below the tables.

    Raises:
        OSError: The file cannot be written.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    described = [_describe(label, outcomes) for label, outcomes in groups.items()]
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        revision=runs.revision(),
        tables=tables,
        remarks=remarks,
        pictures=[(caption, _embedded(path.with_name(name), "image/png")) for name, caption in PICTURES.items()],
        maps=list(_maps(groups)),
        videos=list(_videos(groups)),
        runs=described,
    )
    write_text(path, text)


def _describe(label: str, outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the label of a row, its commands, and the revision and the configuration of its first run."""
    directory = Path(outcomes[0].directory)
    revision = directory / "revision.txt"
    return {
        "label": label,
        "commands": "\n".join(commands(outcomes)),
        "revision": revision.read_text(errors="replace").strip() if revision.is_file() else "unknown",
        "config": json.dumps(Settings(runs.read_config(directory)).get_state(), indent=2, default=str),
    }


def _videos(groups: Groups) -> Iterator[tuple[str, str]]:
    """Yield a caption and the video of each row that has one."""
    for label, outcomes in groups.items():
        directory = _filmed(outcomes)
        if not (directory / VIDEO).exists() and (directory / runs.POLICY).exists():
            say(f"filming an episode of {directory}")
            try:
                policy, trained = runs.load_policy(directory)
                film(policy, trained, directory / VIDEO, 1, VIDEO_SEED)
            except (OSError, ValueError, gym.error.Error) as error:
                say(f"no video of {directory}: {error}")
        if (directory / VIDEO).is_file():
            yield f"{label}: {directory.name}", _embedded(directory / VIDEO, "video/mp4")


def _filmed(outcomes: Sequence[Outcome]) -> Path:
    """Return the directory of a run with the median success rate, one that has a video or a policy if there is one."""
    median = sorted(run.success_rate for run in outcomes)[len(outcomes) // 2]
    candidates = [Path(run.directory) for run in outcomes if run.success_rate == median]
    return max(candidates, key=lambda run: ((run / VIDEO).is_file(), (run / runs.POLICY).is_file()))


def _maps(groups: Groups) -> Iterator[tuple[str, str]]:
    """Yield a caption and the map of Φ of each setting of the potential."""
    shown: set[VisualizeConfig] = set()
    for outcomes in groups.values():
        config = runs.read_config(Path(outcomes[0].directory))
        if not METHODS[config.method].potential or config.task not in available_tasks():
            continue
        wanted = _map_settings(config)
        if wanted not in shown:
            shown.add(wanted)
            form, radius = config.potential.combine, config.potential.radius
            grids = f", number of reset grids {config.grids}" if config.task == SLOT else ""
            caption = f"{config.obs}{grids}: {form}, radius {radius:g}{' m' if grids else ''}"
            say(f"drawing Φ of {caption}")
            try:
                yield caption, _map(wanted)
            except (OSError, ValueError) as error:  # files of another machine
                say(f"no map of Φ for {outcomes[0].directory}: {error}")


def _map_settings(config: TrainConfig) -> VisualizeConfig:
    return VisualizeConfig(
        task=config.task,
        obs=config.obs,
        estimator=config.estimator or get_task(config.task).view(config.obs).estimator_of(config.encoder),
        demonstrations=config.demonstrations,
        filter_key=config.filter_key,
        grids=config.grids,
        combine=(config.potential.combine,),
        radius=(config.potential.radius,),
    )


def _map(settings: VisualizeConfig) -> str:
    if settings.task == SLOT:  # imported here, because it loads robosuite
        from perception.visualize.pictures import draw_potentials
    else:
        from perception.visualize.goal_map import draw_potentials
    stream = io.BytesIO()
    draw_potentials(settings).savefig(stream, format="png", dpi=80)
    return _uri(stream.getvalue(), "image/png")


def _embedded(path: Path, kind: str) -> str:
    return _uri(path.read_bytes(), kind)


def _uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
