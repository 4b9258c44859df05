"""The lean control loop is robosuite's: the same steps, and torques that differ by rounding alone.

Contacts amplify rounding. MuJoCo finds where the rod touches a wall by an iteration that ends within 1e-6 m, so two
states 1e-15 apart can part by 5e-4 m/s in one substep; a rod that meets the puck or tilts it takes a few substeps more.
Of 200 starts with 100 random actions each, the puck ended up more than 1 mm apart in 5 %; robosuite's own loop, its arm
started 1e-12 rad or 1e-15 rad away, left itself in 6 to 8 %, those starts among them.
"""

import mujoco
import numpy as np
import pytest

from envs.push import controller as control
from envs.push.env import PushEnv

STARTS, STEPS = 20, 100
APART = 1e-3  # [m]


class Loops:
    """One environment, stepped by the lean loop or by robosuite's, from the same starts with the same actions."""

    def __init__(self) -> None:
        self.env = PushEnv("push-slot", horizon=10_000, success_speed=0.02)
        self.robosuite = self.env.robosuite
        self.controller = self.robosuite.robots[0].part_controllers["right"]
        for name in self.robosuite.observation_names:
            self.robosuite.modify_observable(name, "enabled", False)  # they cost time and nothing here reads them

    def run(self, start, lean, steps=STEPS, perturbation=0.0):
        """Return tip and puck after each step, shape (steps, 6) [m]; the joints start off by a perturbation [rad]."""
        env, robosuite = self.env, self.robosuite
        env.reset(seed=start)
        env.data.qpos[:7] += perturbation
        robosuite.timestep, robosuite.done = 0, False
        rows = []
        for action in np.random.default_rng(start).uniform(-1, 1, (steps, 2)):
            env.step(action) if lean else robosuite.step(action)
            mujoco.mj_kinematics(env.model, env.data)
            rows.append(np.concatenate([env.end_effector_position, env.puck_position]))
        return np.array(rows)


@pytest.fixture(scope="module")
def loops():
    return Loops()


@pytest.fixture(scope="module")
def stock(loops):
    return [loops.run(start, lean=False) for start in range(STARTS)]


@pytest.mark.slow
def test_with_robosuites_torques_the_motion_is_robosuites(loops, stock, monkeypatch):
    """Bit by bit over 50 steps from every start; on the way our own torques are within 1e-9 N m of robosuite's."""
    ours, controller, errors = control._torques, loops.controller, []

    def theirs(*arguments):
        target, limits, ctrl = arguments[7], arguments[10], arguments[11]
        ours(*arguments)
        controller.set_goal(np.concatenate([target, control.HOLD_ROTATION]))
        torques = np.clip(controller.run_controller(), *limits.T)
        errors.append(np.abs(torques - ctrl[:7]).max())
        ctrl[:7] = torques

    monkeypatch.setattr(control, "_torques", theirs)
    for start, expected in enumerate(stock):
        np.testing.assert_array_equal(loops.run(start, lean=True, steps=50), expected[:50])
    assert len(errors) == STARTS * 50 * 25
    assert max(errors) < 1e-9


def test_tip_and_puck_stay_within_a_millimetre(loops, stock):
    """From every start, but those from which robosuite's loop leaves itself when the joints start 1e-12 rad away."""
    moved, apart = [], []
    for start, expected in enumerate(stock):
        lean = loops.run(start, lean=True)
        moved.append(np.ptp(lean, axis=0))
        if np.abs(lean - expected).max() > APART:
            apart.append(start)
    assert np.min(moved, axis=0)[:2].max() > 0.02 and np.sum(np.max(np.array(moved)[:, 3:5], axis=1) > 0.01) >= 5
    assert len(apart) <= 3
    for start in apart:
        signs = np.random.default_rng(start).choice([-1e-12, 1e-12], (8, 7))
        assert any(
            np.abs(loops.run(start, lean=False, perturbation=each) - stock[start]).max() > APART for each in signs
        )
