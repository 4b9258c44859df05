"""Collection of transitions in parallel to learning, reproducible and with time measurement."""
