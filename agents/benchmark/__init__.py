"""Benchmark of the throughput by stage, compared with the stock stack: ``python -m agents.benchmark``."""
