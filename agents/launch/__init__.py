"""Trainings in separate processes."""
