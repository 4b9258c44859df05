"""The shaped reward of the real task: finishing pays, hovering beside the goal does not."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_match import check_environments_match

import envs  # noqa: F401 (registers the tasks)
from assets import path as asset
from envs.demonstrations import load_demonstrations
from shaping import Potential, PotentialShaping, ValueEstimator

GAMMA = 0.99


def make(combine: str, everywhere: float | None) -> PotentialShaping:
    """The slot task, shaped by the shipped prior or by one that promises the same everywhere."""
    estimator = ValueEstimator.load(asset("estimators/push-plane-state.pt"))
    values = estimator if everywhere is None else lambda observations: 0.0 * observations[:, 0] + everywhere
    shown = [t.observations["state"] for t in load_demonstrations(asset("demonstrations/push-slot-1.hdf5"))]
    potential = Potential(values, shown, goals=estimator.goals, gamma=GAMMA, combine=combine)
    return PotentialShaping(gymnasium.make("PushSlot-v0"), potential)


def rewards(env, puck: float, tip: float, push: float) -> tuple[list[float], dict, bool]:
    """Start behind the puck on the slot's axis and push towards the goal; rewards until the episode ends."""
    env.reset(options={"puck": [puck, 0.0], "end_effector": [tip, 0.0]})
    found: list[float] = []
    while True:
        _, reward, terminated, truncated, info = env.step(np.array([-push, 0.0]))
        found.append(float(reward))
        if terminated or truncated:
            return found, info, terminated


@pytest.mark.parametrize("combine", ["sum", "product"])
@pytest.mark.parametrize("everywhere", [None, 1.0, 5.0])
def test_finishing_beats_hovering_until_the_horizon(combine, everywhere):
    """From 2.1 cm, with the learner's discount anywhere between 0 and 1; entering pays more than any other step."""
    env = make(combine, everywhere)
    hovering, info, terminated = rewards(env, puck=0.021, tip=0.12, push=0.0)
    assert not terminated and not info["is_success"] and len(hovering) == env.unwrapped.horizon
    assert np.abs(info["achieved_goal"][:2] - [0.021, 0.0]).max() < 1e-3
    finishing, info, terminated = rewards(env, puck=0.021, tip=0.065, push=0.15)
    assert terminated and info["is_success"] and info["unshaped_reward"] == 1.0
    others = finishing[:-1] + hovering
    assert finishing[-1] > max(others, default=0.0) + 0.5 * (1.0 - GAMMA)
    for discount in (0.0, 0.5, GAMMA, 1.0):
        first, second = (discount ** np.arange(len(r)) @ np.array(r) for r in (finishing, hovering))
        if discount > 0.0 or len(finishing) == 1:
            assert first > second


def test_the_task_s_own_reward_is_still_there():
    env = make("product", None)
    finishing, info, _ = rewards(env, puck=0.021, tip=0.065, push=0.15)
    assert info["next_potential"] == 1.0
    assert finishing[-1] == pytest.approx(1.0 + GAMMA - info["potential"], abs=1e-6)


def test_a_start_has_the_keys_of_a_step():
    env = make("product", None)
    _, start = env.reset(seed=0)
    _, _, _, _, step = env.step(np.zeros(2))
    assert set(start) == set(step)
    assert start["potential"] == start["next_potential"] == step["potential"] and start["unshaped_reward"] == 0.0


def test_a_description_makes_the_same_environment():
    """In memory: like the other wrappers of Gymnasium that take a function, it cannot be written as JSON."""
    env = make("product", None)
    again = gymnasium.make(env.spec)
    assert isinstance(again, PotentialShaping) and again.potential is env.potential and again.spec == env.spec
    check_environments_match(env, again, num_steps=5, seed=2)
    with pytest.raises(TypeError, match="Potential is not JSON serializable"):
        env.spec.to_json()
