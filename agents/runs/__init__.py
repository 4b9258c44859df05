"""Run directories: writing, reading and resuming trainings."""

from agents.runs.directory import (
    BEST,
    CHECKPOINTS,
    CONFIG,
    POLICY,
    RESULT,
    read_config,
    read_result,
    revision,
    run_name,
    write_result,
)
from agents.runs.policy import load_critic, load_policy, policy_weights
from agents.runs.resume import check_resumable

__all__ = [
    "BEST",
    "CHECKPOINTS",
    "CONFIG",
    "POLICY",
    "RESULT",
    "check_resumable",
    "load_critic",
    "load_policy",
    "policy_weights",
    "read_config",
    "read_result",
    "revision",
    "run_name",
    "write_result",
]
