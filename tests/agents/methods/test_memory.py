"""The estimate of a training's memory against what is really taken."""

import dataclasses
import os
import re
import subprocess
import sys

import numpy as np
import psutil
import pytest

from agents.config.train import LearnerConfig
from agents.methods.memory import (
    available_memory,
    beside_bytes,
    buffer_bytes,
    check_memory,
    estimate_memory,
    release_memory,
    transition_bytes,
)
from agents.methods.shaped_sac import make_agent
from agents.replay.next_observations import Following
from agents.tasks import make_env


def arrays(buffer) -> list[np.ndarray]:
    held = [part.place if isinstance(part, Following) else part for part in vars(buffer).values()]
    return [part for part in held if isinstance(part, np.ndarray) and len(part) == buffer.buffer_size]


@pytest.mark.parametrize(("obs", "training", "features"), [("state", "scratch", 0), ("pointcloud", "frozen", 64)])
def test_full_buffer(small, obs, training, features):
    """Every array is counted, and what a full buffer makes resident is what was estimated."""
    config = small(obs, steps=300_000)
    config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, encoder_training=training))
    env = make_env(config)
    agent = make_agent(config, env)
    release_memory()
    shape = env.observation_space.shape
    estimate, before = estimate_memory(config), psutil.Process().memory_info().rss
    total = sum(array.nbytes for array in arrays(agent.replay_buffer))
    assert total == buffer_bytes(config) == 300_000 * transition_bytes(shape, 2, features)
    for array in arrays(agent.replay_buffer):
        array[:] = 1
    resident = psutil.Process().memory_info().rss
    assert resident - before < 1.2 * total
    assert estimate == pytest.approx(resident, rel=0.2)
    env.close()


@pytest.mark.slow
def test_the_paper_s_training_with_a_million_clouds_takes_what_it_prints(tmp_path):
    given = "--preset paper --obs pointcloud --steps 1000000 --learner.learning-starts 40 --out"
    command = [sys.executable, "-m", "tests.agents.full_buffer", *given.split(), str(tmp_path / "run")]
    said = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
    printed = re.search(r"0\.35 GB for 1000000 transitions, (\S+) GB in all", said.stdout)
    resident = re.search(r"resident: (\d+) bytes, 1000000 rows", said.stdout)
    assert said.returncode == 0 and printed and resident
    assert float(printed[1]) == pytest.approx(int(resident[1]) / 1e9, rel=0.2)
    assert int(resident[1]) < 1.7e9


@pytest.mark.slow
@pytest.mark.parametrize(("obs", "count", "processes"), [("state", 4, 3), ("pointcloud", 2, 3), ("state", 2, 1)])
def test_environments_and_processes_are_in_what_is_printed(obs, count, processes, tmp_path):
    """To less than one environment, and less than the two processes take."""
    given = f"--obs {obs} --num-envs {count} --steps 120 --learner.learning-starts 20 --evaluation.every 20"
    parallel = ["--parallel", "on" if processes > 1 else "off", "--evaluation.episodes", "1"]
    command = [sys.executable, "-m", "tests.agents.full_buffer", *given.split(), *parallel, "--out", tmp_path / "run"]
    said = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
    printed = re.search(r"transitions, (\S+) GB in all once they are there(, 0.06 GB of it in the coll)?", said.stdout)
    resident = re.search(rf"resident: (\d+) bytes, \d+ rows, {processes} processes", said.stdout)
    assert said.returncode == 0 and printed and resident
    assert bool(printed[2]) == (processes > 1)
    assert float(printed[1]) == pytest.approx(int(resident[1]) / 1e9, abs=0.05)


def test_more_environments_than_the_memory_has_are_refused(small):
    few, many = (small(num_envs=count, learner=LearnerConfig(block=1000)) for count in (2, 1000))
    if available_memory() < 55e9:
        with pytest.raises(
            ValueError, match=r"^collecting in 1000 environments needs 55\.\d+ GB, .* lower --num-envs$"
        ):
            check_memory(many)
    check_memory(few)
    off, on = (beside_bytes(small(parallel=parallel)) for parallel in ("off", "on"))
    assert (off, on) == (0, 60_000_000)


def test_a_million_clouds_are_float32_and_stored_once():
    assert transition_bytes((20, 4), 2) * 1_000_000 < 1_000_000 * 80 * 4 * 1.15


def test_what_does_not_fit_is_refused(small):
    free = available_memory()
    too_many = 2 * free // transition_bytes((20, 4), 2)
    config = small("pointcloud", steps=too_many, learner=LearnerConfig(buffer_size=too_many))
    with pytest.raises(
        ValueError, match=r"^a replay buffer of \d+ transitions needs .* GB are free; lower --learner.buf"
    ):
        check_memory(config)
    check_memory(small("pointcloud"))
