"""Shares of the time: of what is nested, and of a real training."""

import dataclasses
import time

import gymnasium
import pytest
from stable_baselines3.common.monitor import Monitor
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents.collecting.collector import watch
from agents.collecting.finite_env import FiniteEnv
from agents.collecting.stopwatch import Stopwatch, describe_shares
from agents.runs.log import read_progress
from agents.tasks import make_env
from agents.train import train

LEARNER = {"waiting", "storing", "updating", "evaluating", "other"}
COLLECTOR = {"physics", "rendering", "potential", "acting", "storing", "waiting", "other"}


def test_what_is_nested_counts_for_the_inner_name_alone():
    clock = Stopwatch(("never",))
    pause = clock.watched(time.sleep, "pause")
    assert clock.shares() == {}, "nothing has begun"
    time.sleep(0.05)  # before the first measurement: not of this time
    with clock("outer"):
        time.sleep(0.02)
        with pytest.raises(ZeroDivisionError), clock("inner"):
            pause(0.04)
            _ = 1 / 0
        pause(0.02)
    time.sleep(0.02)
    shares = clock.shares()
    assert clock.seconds["pause"] == pytest.approx(0.06, rel=0.5) and clock.seconds["inner"] < 0.01
    assert clock.seconds["outer"] == pytest.approx(0.02, rel=0.5)
    assert sum(shares.values()) == pytest.approx(1) and shares["never"] == 0
    assert shares["other"] == pytest.approx(0.2, rel=0.5)


def test_the_rest_may_have_the_name_of_something_measured():
    clock = Stopwatch(rest="waiting")
    for _ in range(2):
        with clock("other"):
            time.sleep(0.02)
        time.sleep(0.01)
    assert clock.shares().keys() == {"other", "waiting"}
    assert clock.shares()["waiting"] == pytest.approx(1 / 3, rel=0.3)


@pytest.mark.parametrize(("obs", "names"), [("state", {"physics"}), ("pointcloud", {"physics", "rendering"})])
def test_rendering_is_apart_from_physics(small, obs, names):
    env, clock = Monitor(FiniteEnv(make_env(small(obs)), "training")), Stopwatch()
    watch(env, clock)
    first, _ = env.reset(seed=0)
    observation, *_ = env.step(env.action_space.sample())
    assert clock.seconds.keys() == names and min(clock.seconds.values()) > 0
    assert observation.shape == first.shape == env.observation_space.shape
    env.close()


def test_an_environment_of_the_user_s_own():
    class Slow(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Box(-1, 1, (2,))

        def reset(self, **_):
            return self.observation_space.sample(), {}

        def step(self, action):
            time.sleep(0.02)
            return self.observation_space.sample(), 0.0, False, False, {}

    def picture(observation):
        time.sleep(0.01)
        return observation[:1]

    seen = gymnasium.spaces.Box(-1, 1, (1,))
    env = gymnasium.wrappers.TransformObservation(gymnasium.wrappers.TimeLimit(Slow(), 5), picture, seen)
    clock = Stopwatch()
    watch(env, clock)
    env.reset()
    for _ in range(5):
        env.step(env.action_space.sample())
    assert clock.seconds["physics"] == pytest.approx(0.1, rel=0.5)
    assert clock.seconds["rendering"] == pytest.approx(0.06, rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["on", "off"])
def test_a_training_logs_and_prints_the_shares_of_its_own_session(small, parallel, capsys):
    config = small("pointcloud", steps=96, parallel=parallel)
    train(config)
    printed = capsys.readouterr().out
    train(dataclasses.replace(config, steps=192, resume=config.out))
    scalars = EventAccumulator(str(config.out)).Reload()
    rows = [row for row in read_progress(config.out / "progress.csv") if "time/collector/physics" in row]
    assert [row["step"] for row in rows] == [96, 192]
    for row in rows:
        for role, names in (("learner", LEARNER), ("collector", COLLECTOR)):
            shares = {name: row[f"time/{role}/{name}"] for name in names}
            assert {name for name in row if name.startswith(f"time/{role}/")} == {f"time/{role}/{n}" for n in names}
            assert all(-1e-9 <= share <= 1 for share in shares.values())
            assert sum(shares.values()) == pytest.approx(1)
            assert all(scalars.Scalars(f"time/{role}/{name}") for name in names)
            assert all(f"{name} " in printed for name in names)
        assert min(row[f"time/collector/{name}"] for name in ("physics", "rendering", "potential", "acting")) > 0
        assert min(row[f"time/learner/{name}"] for name in ("evaluating", "updating")) > 0


def test_the_line_of_a_process_begins_with_what_takes_longest():
    shares = {"learner/updating": 0.3, "learner/waiting": 0.7, "collector/physics": 1.0}
    assert describe_shares(shares).splitlines() == [
        "time of the learner: waiting 70%, updating 30%",
        "time of the collector: physics 100%",
    ]
