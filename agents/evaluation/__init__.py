"""Evaluation of a deterministic policy, with optional videos."""
