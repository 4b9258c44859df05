"""The estimate of a training's memory against what is really taken."""

import dataclasses

import numpy as np
import psutil
import pytest

from agents.build import make_agent, make_env
from agents.config import LearnerConfig
from agents.memory import (
    available_memory,
    buffer_bytes,
    check_memory,
    estimate_memory,
    release_memory,
    transition_bytes,
)


def arrays(buffer) -> list[np.ndarray]:
    return [a for a in vars(buffer).values() if isinstance(a, np.ndarray) and len(a) == buffer.buffer_size]


@pytest.mark.parametrize(("obs", "training", "features"), [("state", "scratch", 0), ("pointcloud", "frozen", 64)])
def test_full_buffer(small, obs, training, features):
    """Every array is counted, and what a full buffer makes resident is what was estimated."""
    config = small(obs, steps=300_000)
    config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, encoder_training=training))
    env = make_env(config)
    agent = make_agent(config, env)
    release_memory()
    shape = env.observation_space.shape
    estimate, before = estimate_memory(config, shape, features), psutil.Process().memory_info().rss
    total = sum(array.nbytes for array in arrays(agent.replay_buffer))
    assert total == buffer_bytes(config, shape, features) == 300_000 * transition_bytes(shape, features)
    for array in arrays(agent.replay_buffer):
        array[:] = 0.5
    resident = psutil.Process().memory_info().rss
    assert resident - before < 1.2 * total
    assert estimate == pytest.approx(resident, rel=0.2)
    env.close()


def test_a_million_clouds_are_float32_and_stored_twice():
    assert transition_bytes((20, 4)) * 1_000_000 < 2 * 1_000_000 * 80 * 4 * 1.05


def test_what_does_not_fit_is_refused(small):
    free = available_memory()
    too_many = 2 * free // transition_bytes((20, 4))
    config = small("pointcloud", steps=too_many, learner=LearnerConfig(buffer_size=too_many))
    with pytest.raises(
        ValueError, match=r"^a replay buffer of \d+ transitions needs .* GB are free; lower --learner.buf"
    ):
        check_memory(config, (20, 4))
    assert "in all" in check_memory(small("pointcloud"), (20, 4))
