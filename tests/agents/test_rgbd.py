"""Trainings on images: what demonstrations show, what is refused, and what a run leaves."""

import dataclasses
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import h5py
import numpy as np
import pytest
import torch

import assets
from agents import runs
from agents.collecting.worker import works_beside
from agents.config import EvaluationConfig, TrainConfig, default_config
from agents.methods import make_agent
from agents.methods.demonstrations import load_trajectories, refuse_failed
from agents.methods.memory import buffer_bytes
from agents.pretrain import main as pretrain
from agents.tasks import make_env
from agents.train import main, train
from envs.demonstrations import load_demonstrations, save_demonstrations
from envs.push.playback import set_simulator_state
from tests.agents.one_line import one_line
from tests.faults.equality import assert_same_end

SHIPPED = assets.path("demonstrations/push-slot-1.hdf5")


@pytest.fixture(scope="module")
def env():
    env = make_env(TrainConfig(obs="rgbd"))
    yield env
    env.close()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Configure a training on images of a few steps, with one evaluation at its end and the end of a demonstration."""
    folder = tmp_path_factory.mktemp("runs")
    (whole,) = load_demonstrations(SHIPPED, states=True)
    rows = {name: values[-11:] for name, values in whole.observations.items()}
    end = dataclasses.replace(whole, observations=rows, actions=whole.actions[-10:], states=whole.states[-11:])
    save_demonstrations(folder / "end.hdf5", [end], {})

    def build(name: str, **changes) -> TrainConfig:
        config = default_config("default", "rgbd", "buffer")
        learner = dataclasses.replace(config.learner, learning_starts=20, batch_size=16, net_arch=(32, 32))
        settings = {"steps": 88, "checkpoint_every": 32, "device": "cpu", "evaluation": EvaluationConfig(88, 1, 1)}
        settings["demonstrations"] = folder / "end.hdf5"
        return dataclasses.replace(config, **settings | {"out": folder / name, "learner": learner} | changes)

    return build


def test_a_demonstration_shows_the_images_of_its_states(env, capsys):
    """Cut at its first success, as for the other observations; the training environment is left alone."""
    (shown,) = load_trajectories(TrainConfig(obs="rgbd"), env)
    assert "observations 'rgbd' made from its states" in capsys.readouterr().out
    (whole,) = load_demonstrations(SHIPPED, states=True)
    images = shown.observations["rgbd"]
    assert images.shape == (shown.horizon + 1, 4, 48, 48) and images.dtype == np.float32
    assert shown.horizon < whole.horizon and len(shown.actions) == shown.horizon
    env.reset(seed=0)
    for step in (0, 60, shown.horizon):
        set_simulator_state(env, whole.states[step])
        np.testing.assert_allclose(env.get_wrapper_attr("observe")(), images[step], atol=1e-6)


def changed(folder, change):
    """A copy of the shipped file after a change of its demonstration."""
    path = folder / "shown.hdf5"
    path.write_bytes(SHIPPED.read_bytes())
    with h5py.File(path, "a") as file:
        change(file["data/demo_0"])
    return path


def without_states(demonstration):
    del demonstration["states"], demonstration["last_state"]


def of_another_model(demonstration):
    states = demonstration["states"][:, :-2]
    without_states(demonstration)
    demonstration["states"], demonstration["last_state"] = states, states[-1]


@pytest.mark.parametrize(
    "change, said",
    [
        (without_states, "demo_0: obs/rgbd: is missing, and so are the states to make it from"),
        (of_another_model, "but the simulator of push-slot has"),
    ],
)
def test_states_that_do_not_tell_are_one_line(change, said, env, tmp_path):
    config = TrainConfig(obs="rgbd", demonstrations=changed(tmp_path, change))
    with pytest.raises(ValueError, match=said) as error:
        load_trajectories(config, env)
    assert "\n" not in str(error.value)


def test_recorded_images_are_taken_as_they_are(env, tmp_path, capsys):
    """Also where nothing else was recorded, so that nothing but the recording tells where the success is."""
    (trajectory,) = load_demonstrations(SHIPPED, states=True)
    rows = np.random.default_rng(0).random((trajectory.horizon + 1, 4, 48, 48)).astype(np.float32)
    save_demonstrations(tmp_path / "images.hdf5", [dataclasses.replace(trajectory, observations={"rgbd": rows})], {})
    (shown,) = load_trajectories(TrainConfig(obs="rgbd", demonstrations=tmp_path / "images.hdf5"), env)
    np.testing.assert_array_equal(shown.observations["rgbd"], rows)
    assert "made from" not in capsys.readouterr().out


@pytest.mark.parametrize("method", ["buffer", "bc"])
def test_what_does_not_end_in_success_is_refused(images, method, tmp_path):
    """An image has no goal, but what was recorded with it tells; alone it is believed."""
    (whole,) = load_demonstrations(SHIPPED, states=True)
    save_demonstrations(tmp_path / "shown.hdf5", [whole.until(8)], {})
    config = images("failed", method=method, demonstrations=tmp_path / "shown.hdf5", parallel="off")
    with closing(make_env(config)) as env:
        with pytest.raises(ValueError, match=r"shown\.hdf5: demo_0 is no success at its end; record it until"):
            make_agent(config, env)
        short = dataclasses.replace(whole.until(8), observations={"rgbd": np.zeros((9, 4, 48, 48), np.float32)})
        refuse_failed([short], config, env)


@pytest.mark.parametrize(
    "words",
    [
        ["--method", "buffer+potential+annealing+guide"],
        ["--method", "gail"],
        ["--method", "potential", "--estimator", str(assets.path("estimators/push-plane-pointcloud.pt"))],
        ["--learner.encoder-training", "frozen"],
    ],
)
def test_what_needs_a_prior_is_refused_in_one_line(words, tmp_path, capsys):
    error = one_line(main, ["--obs", "rgbd", *words, "--out", str(tmp_path / "run")], capsys)
    assert "'rgbd' has no goal to subtract" in error and "choose buffer, sparse or bc" in error
    assert not list(tmp_path.iterdir())


def test_a_prior_of_images_is_refused_in_one_line(tmp_path, capsys):
    words = ["--obs", "rgbd", "--out", str(tmp_path / "prior.pt")]
    assert "has no goal set for 'rgbd'" in one_line(pretrain, words, capsys)


def test_images_are_drawn_in_the_process_of_the_learner(tmp_path, capsys):
    assert not works_beside("auto", opengl=True) and works_beside("on")
    words = ["--obs", "rgbd", "--parallel", "on", "--out", str(tmp_path / "run")]
    assert "--parallel on: observations drawn by OpenGL stay in one process" in one_line(main, words, capsys)


def test_a_buffer_of_images_is_counted(images):
    """About 37 kB a transition: float32, stored once."""
    assert buffer_bytes(images("none", steps=25_000)) == pytest.approx(0.92e9, rel=0.01)


@pytest.fixture(scope="module")
def whole(images) -> Path:
    """Run directory of an uninterrupted training."""
    train(images("whole"))
    return images("whole").out


@pytest.mark.slow
def test_a_training_on_images_leaves_a_policy(whole):
    assert runs.read_result(whole)["environment_steps"] == 88
    policy, config = runs.load_policy(whole)
    assert (config.obs, config.method, config.learner.encoder_training) == ("rgbd", "buffer", "scratch")
    observation = gym.spaces.Box(0, 1, (4, 48, 48), seed=0).sample()
    assert policy.predict(observation, deterministic=True)[0].shape == (2,)


@pytest.mark.slow
def test_the_encoder_is_trained(whole):
    first, last = (
        torch.load(path / "agent.pt", weights_only=True)["policy"] for path in sorted(whole.glob("checkpoints/step-*"))
    )
    names = [name for name in first if name.startswith("critic.features_extractor")]
    assert names and all(not torch.equal(first[name], last[name]) for name in names)


@pytest.mark.slow
def test_a_crashed_training_on_images_goes_on_as_if_it_had_not(whole, images, crash):
    parts = images("parts")
    crash(parts, 70)
    train(dataclasses.replace(runs.read_config(parts.out), resume=parts.out))
    assert_same_end(whole, parts.out)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sparse", "bc"])
def test_other_methods_without_a_prior_train_on_images(images, method):
    assert train(images(method, method=method, steps=40))["obs"] == "rgbd"
