"""Results of the paper (its table "mean_std"): mean success rates of ten agents [%]."""

_COLUMNS: tuple[tuple[str, int], ...] = (("state", 1), ("state", 2), ("pointcloud", 1))
"""Observation and number of reset grids."""
_MEANS = {
    "buffer+potential+annealing": (99.0, 76.0, 95.0),
    "buffer+potential": (99.0, 77.0, 94.0),
    "potential+annealing": (69.0, 76.0, 95.0),
    "potential": (88.0, 95.0, 93.0),
    "buffer": (30.0, 47.0, 85.0),
    "gail": (40.0, 24.0, 71.0),
    "pwil": (0.2, 8.4, 0.8),
    "dril": (1.0, 0.0, 0.1),
    "adril": (6.1, 46.5, 20.8),
}
_CLONING = {1: (1.0, 1.0, 0.0), 10: (36.0, 13.0, 0.0), 100: (51.0, 22.0, 0.0)}
"""Behavioural cloning by number of demonstrations per reset grid."""


def paper_result(method: str, obs: str, grids: int, demonstrations: int) -> float | None:
    """Return the paper's mean success rate [%] of a method, or None if the paper does not have it.

    Args:
        method: Name of the method.
        obs: Observation type.
        grids: Number of active reset grids.
        demonstrations: Number of demonstrations; it matters for "bc" alone, which the paper trains on 1, 10 and 100 of
            each grid.
    """
    means = _CLONING.get(demonstrations // grids) if method == "bc" else _MEANS.get(method)
    if means is None or (obs, grids) not in _COLUMNS:
        return None
    return means[_COLUMNS.index((obs, grids))]
