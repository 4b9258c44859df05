"""Launchers of trainings: local processes, a Ray cluster, or Slurm."""
