"""Throughput by stage, beside the stock stack: ``python -m agents.benchmark``."""
