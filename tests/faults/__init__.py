"""Faults on purpose: kills, damaged files and full disks, and whether a run survives them.

``python -m tests.faults --kills 20 --damages 60 --disks 8`` does many, the test beside it a few of each.
"""
