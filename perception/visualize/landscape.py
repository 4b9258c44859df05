"""Evaluation of Φ over the table, for the paper's heat map (figures heatmap_push)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from envs.push.geometry import PUCK_RADIUS, TABLE_SIZE
from shaping.potential import Potential

Wall = tuple[Sequence[float], Sequence[float]]  # centre, world frame, and half sizes [m]
STEP = 0.01  # distance between puck positions [m]


@dataclass(frozen=True)
class Landscape:
    """Φ on a grid of puck positions; positions in the world frame [m].

    Attributes:
        title: Observation and settings of Φ.
        x: Puck positions away from the robot, ascending, shape (nx,).
        y: Puck positions to the robot's left, ascending, shape (ny,).
        potential: Φ, shape (nx, ny); NaN where the puck would be inside a wall.
        start: Position of the puck at the start, shape (2,).
        end_effector: Position of the tip of the pusher at the start, shape (2,).
        goal: Position of the goal, shape (2,).
        states: Demonstrated puck positions, shape (states, 2).
        scores: V_d ⊕ Ṽ_g of each state, seen from the start, shape (states,).
        joined: Formula of the scores, "V_d · Ṽ_g" or "V_d + Ṽ_g".
        in_range: Whether each state is in Δ(start), shape (states,).
        chosen: Index of the state that attains the maximum Φ(start), or None.
    """

    title: str
    x: Float[np.ndarray, " nx"]
    y: Float[np.ndarray, " ny"]
    potential: Float[np.ndarray, "nx ny"]
    start: Float[np.ndarray, "2"]
    end_effector: Float[np.ndarray, "2"]
    goal: Float[np.ndarray, "2"]
    states: Float[np.ndarray, "states 2"]
    scores: Float[np.ndarray, " states"]
    joined: str
    in_range: Bool[np.ndarray, " states"]
    chosen: int | None


def survey(
    potential: Potential,
    observation: Float[np.ndarray, "..."],
    puck: Float[np.ndarray, "2"],
    end_effector: Float[np.ndarray, "2"],
    goal: Float[np.ndarray, "2"],
    walls: Iterable[Wall],
    success_distance: float,
    step: float = STEP,
) -> Landscape:
    """Evaluate Φ on a grid of puck positions, with the puck at rest and the arm displaced with the puck.

    Moving puck and arm by d changes only the components relative to the goal. The result equals the observation of the
    start with the goal moved by −d. Demonstrated states are placed by their displacement from the puck at the start.

    Args:
        potential: Φ.
        observation: Observation of the start, everything at rest.
        puck: Position of the puck at the start, world frame, shape (2,) [m].
        end_effector: Position of the tip of the pusher at the start, world frame, shape (2,) [m].
        goal: Centre of the goal set, world frame, shape (2,) [m].
        walls: Walls, each by its centre and half sizes, world frame [m].
        success_distance: Distance from the goal within which the puck is in the goal set [m].
        step: Distance between puck positions [m].
    """
    goals, demonstrated = potential.goals, potential.demonstrated
    half = np.array(TABLE_SIZE[:2]) / 2 - PUCK_RADIUS
    x, y = (np.arange(-np.floor(h / step), np.floor(h / step) + 1) * step for h in half)
    positions = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    shift = np.zeros((len(positions), goals.goal_dim), dtype=np.float32)
    shift[:, :2] = puck - positions
    success = np.hypot(*(positions - goal).T) < success_distance
    phi = potential(goals.substitute(observation[None], shift)[0], success).astype(float)
    phi[overlaps_wall(positions, walls)] = np.nan
    explained = potential.explain(observation)
    reached, value = (np.concatenate(explained[key]) for key in ("V_d", "V_g"))
    chosen = explained["chosen"]
    return Landscape(
        title=f"{goals.name}, {potential.combine}, radius {potential.radius:g} m",
        x=x,
        y=y,
        potential=phi.reshape(len(x), len(y)),
        start=puck,
        end_effector=end_effector,
        goal=goal,
        states=puck + demonstrated.goal[:, :2] - goals.extract(observation)[:2],
        scores=reached * value if potential.combine == "product" else reached + value,
        joined="V_d · Ṽ_g" if potential.combine == "product" else "V_d + Ṽ_g",
        in_range=np.concatenate(explained["in_range"]),
        chosen=None if chosen is None else int(demonstrated.starts[chosen[0]] + chosen[1]),
    )


def overlaps_wall(positions: Float[np.ndarray, "positions 2"], walls: Iterable[Wall]) -> Bool[np.ndarray, " positions"]:
    """Return at which positions the puck overlaps a wall: its centre is closer to the wall than its radius."""
    inside = np.zeros(len(positions), dtype=bool)
    for center, size in walls:
        gap = np.maximum(np.abs(positions - np.array(center[:2])) - size[:2], 0.0)
        inside |= np.hypot(*gap.T) < PUCK_RADIUS
    return inside


def curves(
    potential: Potential, observations: Float[np.ndarray, "steps ..."], solved: bool = True
) -> dict[str, Float[np.ndarray, " steps"]]:
    """Return Φ along an episode, and V_d and Ṽ_g of the demonstrated state that attains its maximum.

    The last observation is in the goal set if the episode is solved. V_d and Ṽ_g are 0 where Δ(s) is empty.
    """
    success = (np.arange(len(observations)) == len(observations) - 1) & solved
    rows = {"Φ": potential(observations, success), "V_d": np.zeros(len(success)), "Ṽ_g": np.zeros(len(success))}
    for step, observation in enumerate(observations):
        explained = potential.explain(observation)
        if explained["chosen"] is not None:
            demonstration, index = explained["chosen"]
            rows["V_d"][step] = explained["V_d"][demonstration][index]
            rows["Ṽ_g"][step] = explained["V_g"][demonstration][index]
    return rows
