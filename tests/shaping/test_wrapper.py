"""The wrapper pays the shaped reward of any Gymnasium task, whichever way an episode ends."""

import textwrap

import gymnasium
import numpy as np
import pytest
import torch

import shaping.wrapper
from shaping import Potential, PotentialShaping, ValueEstimator

GAMMA = 0.95


class Line(gymnasium.Env):
    """Move a puck along a line: success within 2 cm of the goal, failure 20 cm beyond the start."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (8,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def _observe(self):
        return np.array([0.05, 0.0, 0.0, 0.0, self.x, 0.0, self.v, 0.0], dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v = 0.2 + self.np_random.uniform(-0.01, 0.01), 0.0
        return self._observe(), {"start": self.x}

    def step(self, action):
        self.v = 0.3 * float(action[0])
        self.x += 0.05 * self.v
        success, failure = abs(self.x) < 0.02, self.x > 0.4
        return self._observe(), float(success), success or failure, False, {"is_success": success}


def make_estimator() -> ValueEstimator:
    torch.manual_seed(0)
    estimator = ValueEstimator("state", "state", {}, hidden=(16, 16), gamma=GAMMA).eval()
    with torch.no_grad():
        estimator.value[-1].bias += 0.7
    return estimator


def make_demonstration() -> np.ndarray:
    demonstration = np.zeros((30, 8), dtype=np.float32)
    demonstration[:, 4] = np.linspace(0.2, 0.0, 30)
    return demonstration


def make_potential(**settings) -> Potential:
    return Potential(make_estimator(), [make_demonstration()], gamma=GAMMA, **settings)


def roll(env, act, gamma=GAMMA, seed=0):
    """Return both discounted returns, the last step, and every potential reported."""
    observation, info = env.reset(seed=seed)
    first, potentials = observation, [info["potential"]]
    shaped = unshaped = 0.0
    for t in range(10_000):
        observation, reward, terminated, truncated, info = env.step(act(observation))
        shaped += gamma**t * reward
        unshaped += gamma**t * info["unshaped_reward"]
        assert info["potential"] == potentials[-1], "Φ(s) is the Φ(s′) of the step before"
        potentials.append(info["next_potential"])
        if terminated or truncated:
            return shaped, unshaped, t + 1, terminated, first, observation, potentials
    raise AssertionError("the episode did not end")


@pytest.mark.parametrize("combine", ["sum", "product"])
@pytest.mark.parametrize(
    ("end", "push", "limit"), [("success", -1.0, 100), ("truncated", -0.5, 12), ("failure", 1.0, 100)]
)
def test_shaped_returns_telescope(end, push, limit, combine):
    """Σ γ^t r̄_t = Σ γ^t r_t + γ^T Φ(s_T) − Φ(s_0), Φ(s_T) being 1, the ordinary Φ, or 0."""
    potential = make_potential(combine=combine)
    env = PotentialShaping(gymnasium.wrappers.TimeLimit(Line(), limit), potential, GAMMA)
    shaped, unshaped, steps, terminated, first, last, potentials = roll(env, lambda _: np.array([push, 0.0]))
    assert terminated == (end != "truncated") and unshaped == pytest.approx(GAMMA ** (steps - 1) * (end == "success"))
    ordinary = float(potential(last[None])[0])
    final = {"success": 1.0, "truncated": ordinary, "failure": 0.0}[end]
    assert potentials[-1] == pytest.approx(final) and (end != "truncated" or ordinary > 0.1)
    expected = unshaped + GAMMA**steps * final - float(potential(first[None])[0])
    assert shaped == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Pendulum-v1"])
def test_any_task_and_any_potential(name):
    """Discrete and continuous actions, tasks that report no success, and a potential that is a plain function."""

    def potential(observations, success):
        return np.where(success, 1.0, np.tanh(observations[:, 0]))

    env = PotentialShaping(gymnasium.make(name), potential, 0.9, success=lambda info: False)
    env.action_space.seed(0)
    shaped, unshaped, steps, _, _, _, potentials = roll(env, lambda _: env.action_space.sample(), gamma=0.9)
    assert shaped == pytest.approx(unshaped + 0.9**steps * potentials[-1] - potentials[0], abs=1e-9)


def test_episodes_do_not_leak_into_each_other():
    """A reset in the middle of an episode starts from Φ of the new state."""
    potential = make_potential()
    env = PotentialShaping(Line(), potential)
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.array([-1.0, 0.0]))
    observation, info = env.reset(seed=1)
    assert info["potential"] == pytest.approx(float(potential(observation[None])[0])) and "start" in info
    _, reward, _, _, info = env.step(np.array([0.0, 0.0]))
    assert reward == pytest.approx(info["unshaped_reward"] + GAMMA * info["next_potential"] - info["potential"])


def test_discount_is_that_of_the_potential_unless_given():
    assert PotentialShaping(Line(), make_potential()).gamma == GAMMA
    assert PotentialShaping(Line(), make_potential(), 0.5).gamma == 0.5
    assert PotentialShaping(Line(), lambda observations, success: np.zeros(len(observations))).gamma == 0.99


def test_observations_and_spaces_are_untouched():
    plain, shaped = Line(), PotentialShaping(Line(), make_potential())
    assert shaped.observation_space == plain.observation_space and shaped.action_space == plain.action_space
    np.testing.assert_array_equal(plain.reset(seed=3)[0], shaped.reset(seed=3)[0])
    np.testing.assert_array_equal(plain.step(np.ones(2))[0], shaped.step(np.ones(2))[0])


def test_the_documented_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_estimator().save("estimator.pt")
    np.save("demonstration.npy", make_demonstration())
    monkeypatch.setitem(gymnasium.registry, "MyTask-v0", gymnasium.envs.registration.EnvSpec("MyTask-v0", Line))
    example, own_potential = (textwrap.dedent("\n".join(block)) for block in indented_blocks(shaping.wrapper.__doc__))
    names: dict = {}
    exec(example, names)
    unshaped, potential, next_potential = map(float, capsys.readouterr().out.split())
    assert names["reward"] == pytest.approx(unshaped + GAMMA * next_potential - potential)
    exec(own_potential, names)
    assert PotentialShaping(Line(), names["potential"]).reset(seed=0)[1]["potential"] > 0.0


def indented_blocks(text: str) -> list[list[str]]:
    """Return the runs of lines that are indented or, between such lines, empty."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("    ") or (not line and blocks[-1]):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def test_what_does_not_fit_is_refused():
    class Never(Line):
        observation_space = gymnasium.spaces.Dict({})

    with pytest.raises(ValueError, match="needs a Box"):
        PotentialShaping(Never(), make_potential())
    with pytest.raises(ValueError, match=r"gamma is 1\.5"):
        PotentialShaping(Line(), make_potential(), 1.5)

    def hopeless(observations, success):
        return np.full(len(observations), np.nan)

    with pytest.raises(ValueError, match=r"hopeless.*one finite number"):
        PotentialShaping(Line(), hopeless).reset()


def test_an_end_that_is_no_success_is_worth_nothing():
    """CartPole ends by falling."""
    env = PotentialShaping(
        gymnasium.make("CartPole-v1"), lambda o, s: np.where(s, 1.0, 0.5), success=lambda info: False
    )
    env.reset(seed=0)
    terminated = False
    while not terminated:
        _, reward, terminated, _, info = env.step(0)
    assert info["next_potential"] == 0.0 and reward == pytest.approx(1.0 - 0.5)


class Says(gymnasium.Wrapper):
    """Report success in other words, and go on after it if asked to."""

    def __init__(self, env, say, goes_on=False):
        super().__init__(env)
        self.say, self.goes_on = say, goes_on

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = self.say(info.pop("is_success"))
        return observation, reward, terminated and not self.goes_on, truncated, info


def push_until_it_ends(env):
    env.reset(seed=0)
    while True:
        _, reward, terminated, truncated, info = env.step(np.array([-1.0, 0.0]))
        if terminated or truncated:
            return reward, info


@pytest.mark.parametrize(
    ("say", "success"),
    [
        (lambda s: {"success": s}, "success"),
        (lambda s: {"success": np.float32(s)}, "success"),
        (lambda s: {"distance": 0.01 if s else 0.3}, lambda info: info["distance"] < 0.02),
        (lambda s: {"result": "goal"} if s else {}, lambda info: info["result"] == "goal"),
    ],
)
def test_a_success_in_other_words_pays_what_a_success_pays(say, success):
    expected, named = push_until_it_ends(PotentialShaping(Line(), make_potential()))
    reward, info = push_until_it_ends(PotentialShaping(Says(Line(), say), make_potential(), success=success))
    assert reward == expected == pytest.approx(1.0 + GAMMA - info["potential"])
    assert info["next_potential"] == named["next_potential"] == 1.0


def test_an_end_of_unknown_success_is_an_error_that_names_what_info_has():
    env = PotentialShaping(Says(Line(), lambda s: {"success": s, "distance": 0.3}), make_potential())
    with pytest.raises(ValueError, match=r"'is_success'.*'success', 'distance'.*give success=") as stop:
        push_until_it_ends(env)
    assert "\n" not in str(stop.value)
    with pytest.raises(ValueError, match=r"info has no keys: give success="):
        push_until_it_ends(PotentialShaping(gymnasium.wrappers.TimeLimit(Says(Line(), lambda s: {}), 99), ordinary))


def test_a_time_limit_needs_no_word_on_success():
    env = PotentialShaping(gymnasium.wrappers.TimeLimit(Says(Line(), lambda s: {}), 3), ordinary)
    _, info = push_until_it_ends(env)
    assert info["next_potential"] == pytest.approx(info["potential"], abs=0.1) != 0.0


def ordinary(observations, success):
    return np.where(success, 1.0, 1.0 - observations[:, 4])


@pytest.mark.parametrize("success", ["is_success", lambda info: info["is_success"]])
def test_a_goal_set_in_which_the_task_goes_on_has_the_same_constant(success):
    """Enter, stay and leave: Φ is a function of the state, so shaped returns telescope as ever."""
    line = Says(Line(), lambda s: {"is_success": s}, goes_on=True)
    env = PotentialShaping(gymnasium.wrappers.TimeLimit(line, 40), ordinary, GAMMA, success)
    inside, kinds = [False], set()
    observation, info = env.reset(seed=0)
    first, returned, unshaped = info["potential"], 0.0, 0.0
    for step in range(40):
        push = -1.0 if step < 13 else 0.0 if step < 16 else -1.0
        observation, reward, terminated, truncated, info = env.step(np.array([push, 0.0]))
        before = 1.0 if inside[-1] else info["potential"]
        inside.append(info["is_success"])
        after = 1.0 if inside[-1] else float(ordinary(observation[None], np.zeros(1, bool))[0])
        assert reward == pytest.approx(info["unshaped_reward"] + GAMMA * after - before)
        kinds.add(tuple(inside[-2:]))
        returned, unshaped = returned + GAMMA**step * reward, unshaped + GAMMA**step * info["unshaped_reward"]
    assert kinds == {(False, False), (False, True), (True, True), (True, False)} and truncated and not terminated
    assert returned == pytest.approx(unshaped + GAMMA**40 * after - first)


def test_a_start_after_an_automatic_reset_is_no_transition():
    env = PotentialShaping(gymnasium.wrappers.Autoreset(Line()), make_potential())
    env.reset(seed=0)
    ended = False
    while not ended:
        _, _, terminated, truncated, _ = env.step(np.array([-1.0, 0.0]))
        ended = terminated or truncated
    observation, reward, *_, info = env.step(np.array([-1.0, 0.0]))
    assert reward == 0.0 and info["potential"] == pytest.approx(float(env.potential(observation[None])[0]))
    _, reward, *_, info = env.step(np.array([0.0, 0.0]))
    assert reward == pytest.approx(GAMMA * info["next_potential"] - info["potential"])


def test_two_shapings_add_and_the_task_s_reward_is_kept():
    env = PotentialShaping(PotentialShaping(Line(), make_potential()), make_potential())
    env.reset(seed=0)
    _, reward, *_, info = env.step(np.array([-0.5, 0.0]))
    assert info["unshaped_reward"] == 0.0
    assert reward == pytest.approx(2 * (GAMMA * info["next_potential"] - info["potential"]))
