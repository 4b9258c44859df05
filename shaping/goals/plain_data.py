"""Goal sets as plain data, for files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from shaping.goals.box import BoxGoals
from shaping.goals.goal_set import GoalSet
from shaping.goals.puck import CloudGoals

KINDS: dict[str, type[BoxGoals] | type[CloudGoals]] = {"box": BoxGoals, "cloud": CloudGoals}


def goals_to_dict(goals: GoalSet) -> dict[str, Any]:
    """Return a goal set as plain data.

    Raises:
        ValueError: It is not a `BoxGoals` or `CloudGoals`.
    """
    for kind, made in KINDS.items():
        if type(goals) is made:
            data = {field.name: getattr(goals, field.name) for field in fields(goals)}
            return {"kind": kind} | {k: [v.start, v.stop] if isinstance(v, slice) else v for k, v in data.items()}
    raise ValueError(f"{type(goals).__name__} cannot be stored in a file; use BoxGoals or CloudGoals")


def goals_from_dict(data: Mapping[str, Any]) -> GoalSet:
    """Return the goal set of `goals_to_dict`.

    Raises:
        ValueError: It is not that of a goal set.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"goals are {data!r}; give a goal set or its plain data")
    given = {k: v for k, v in data.items() if k != "kind"}
    made = KINDS.get(str(data.get("kind")))
    if made is None:
        raise ValueError(f"goals of the kind {data.get('kind')!r}; known kinds: {', '.join(KINDS)}")
    columns = ("displacement", "achieved", "desired", "position")
    slices = {k: slice(*v) for k, v in given.items() if k in columns and v is not None}
    scale = {"scale": tuple(given["scale"])} if isinstance(given.get("scale"), list) else {}
    try:
        return made(**given | slices | scale)
    except TypeError as error:
        raise ValueError(f"goals {dict(data)}: {error}") from None
