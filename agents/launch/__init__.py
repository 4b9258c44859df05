"""Trainings as processes of their own."""
