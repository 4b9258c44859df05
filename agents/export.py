"""Export the agent of a run as one file that runs without this project: ``python -m agents.export RUN``."""

import io
import json
import logging
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import tyro
from jaxtyping import Float
from torch import Tensor, nn

from agents import runs
from agents.config import TrainConfig
from agents.methods.encoder import encoder_info
from agents.tasks import get_task
from agents.tasks.named import register_named
from envs.command import one_line_errors
from envs.files import check_replaceable, write_bytes, write_text

TOLERANCE = 1e-6
"""Largest difference between an action of the file and one of the agent, in units of half the range of actions."""
SPREAD = 0.5
"""Largest absolute value of the numbers in the observations with which the file is checked."""
SUFFIXES = {"torchscript": ".pt", "onnx": ".onnx"}


@dataclass(frozen=True)
class ExportConfig:
    """Write the deterministic agent of a run, encoder and scaling included, as one TorchScript or ONNX file.

    A JSON file beside it describes the observation and the action.
    """

    run: Annotated[Path, tyro.conf.Positional]
    """Run directory or checkpoint."""
    format: Literal["torchscript", "onnx"] = "torchscript"
    """Format of the file. ONNX needs an extra: pip install 'pushcloud[onnx]'."""
    out: Path | None = None
    """File to write; default: agent.pt or agent.onnx in the current directory."""
    imports: tuple[str, ...] = ()
    """Task and encoder of your own that the run uses, each as module:Name."""

    @property
    def file(self) -> Path:
        """File to write."""
        return self.out or Path(f"agent{SUFFIXES[self.format]}")

    @property
    def contract(self) -> Path:
        """Description of observation and action."""
        return self.file.with_suffix(".json")


class DeployedAgent(nn.Module):
    """Deterministic agent: encoder, hidden layers, tanh and the range of the actions.

    Args:
        policy: Policy of a run (`agents.runs.load_policy`).
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        actor = policy.actor
        self.encoder, self.hidden, self.mean = actor.features_extractor.encoder, actor.latent_pi, actor.mu
        self.low: Tensor
        self.high: Tensor
        self.register_buffer("low", torch.from_numpy(policy.action_space.low))
        self.register_buffer("high", torch.from_numpy(policy.action_space.high))

    def forward(self, observation: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch action"]:
        """Return the actions."""
        scaled = torch.tanh(self.mean(self.hidden(self.encoder(observation))))
        return self.low + 0.5 * (scaled + 1.0) * (self.high - self.low)


def export(config: ExportConfig) -> float:
    """Write the file and its description, and return the largest difference from the agent's actions.

    Raises:
        FileNotFoundError: There is no run.
        ImportError: The format needs a package that is not installed.
        ValueError: The file gives other actions than the agent; nothing is written.
    """
    check(config)
    register_named(config.imports, "--imports")
    policy, trained = runs.load_policy(config.run)
    agent = DeployedAgent(policy).eval()
    task = get_task(trained.task)
    space, action_space = task.view(trained.obs).space, task.action_space
    low, high = (np.clip(bound, -SPREAD, SPREAD) for bound in (space.low, space.high))
    observations = (low + (high - low) * np.random.default_rng(0).random((64, *space.shape))).astype(np.float32)
    expected, _ = policy.predict(observations, deterministic=True)
    convert = {"torchscript": _torchscript, "onnx": _onnx}[config.format]
    content, run = convert(agent, torch.from_numpy(observations[:2]))
    actions = np.concatenate([run(observations[:1]), run(observations[1:])])  # two sizes of the batch
    half_range = (action_space.high - action_space.low) / 2
    difference = float(np.abs((actions - expected) / half_range).max())
    if not difference <= TOLERANCE:
        raise ValueError(f"{config.file}: actions differ from the agent's by {difference:.2g}; nothing is written")
    config.file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(config.file, content)
    write_text(config.contract, json.dumps(_contract(config, trained), indent=2) + "\n")
    return difference


def check(config: ExportConfig) -> None:
    """Check the file to write.

    Raises:
        ValueError: Its name does not end as the format asks, or it would lie in a run directory or checkpoint.
    """
    suffix = SUFFIXES[config.format]
    if config.file.suffix != suffix:
        raise ValueError(f"--out {config.file}: give a name that ends in {suffix}, as --format {config.format} has it")
    of_runs = (runs.POLICY, runs.BEST, runs.CHECKPOINTS)
    if any(
        (folder / runs.CONFIG).exists() and any((folder / name).exists() for name in of_runs)
        for folder in config.file.absolute().parents
    ):
        raise ValueError(f"--out {config.file} lies in a run directory, whose files it could replace; choose another")
    for path in (config.file, config.contract):
        check_replaceable(path)


def _contract(config: ExportConfig, trained: TrainConfig) -> dict[str, Any]:
    task = get_task(trained.task)
    space = task.view(trained.obs).space
    return {
        "file": config.file.name,
        "format": config.format,
        "task": trained.task,
        "observation": {
            "name": trained.obs,
            "shape": ["batch", *space.shape],
            "dtype": "float32",
            "meaning": task.view(trained.obs).meaning,
        },
        "action": {
            "shape": ["batch", *task.action_space.shape],
            "dtype": "float32",
            "low": task.action_space.low.tolist(),
            "high": task.action_space.high.tolist(),
            "meaning": task.action_meaning,
        },
        "encoder": encoder_info(trained).name,
        "run": config.run.name,
        "revision": runs.revision(),
    }


def _torchscript(agent: nn.Module, example: Tensor) -> tuple[bytes, Any]:
    """Return the file's content and a function that runs it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch recommends torch.export, whose files C++ programs do not load as simply
        traced = torch.jit.trace(agent, example, check_trace=False)  # the file is checked, by more observations
        stream = io.BytesIO()
        torch.jit.save(traced, stream)
        loaded = torch.jit.load(io.BytesIO(stream.getvalue()))

    def run(observations: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return loaded(torch.from_numpy(observations)).numpy()

    return stream.getvalue(), run


def _onnx(agent: nn.Module, example: Tensor) -> tuple[bytes, Any]:
    """Return the file's content and a function that runs it."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 (torch.onnx needs it)
    except ImportError:
        raise ImportError("--format onnx needs an extra: pip install 'pushcloud[onnx]'") from None
    for name in ("torch.onnx", "onnxscript"):  # they warn that torchvision is not installed, and what is not optimised
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside torch's exporter
        program: Any = torch.onnx.export(
            agent,
            (example,),
            input_names=["observation"],
            output_names=["action"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            dynamo=True,
            verbose=False,
        )
    content = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return content, lambda observations: session.run(None, {"observation": observations})[0]


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m agents.export``."""
    config = tyro.cli(ExportConfig, args=arguments, prog="python -m agents.export")
    difference = export(config)
    print(f"wrote {config.file}, {config.contract}; actions differ from the agent's by at most {difference:.1g}")


if __name__ == "__main__":
    main()
