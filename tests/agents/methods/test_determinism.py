"""The same seed gives the same training, in another process too."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys, hashlib
import numpy as np
from agents.methods import make_agent
from agents.config.train import LearnerConfig, TrainConfig
from agents.collecting.finite_env import FiniteEnv
from agents.tasks import make_env

seed, estimator, demonstrations = int(sys.argv[1]), *sys.argv[2:]
learner = LearnerConfig(batch_size=16, learning_starts=50, net_arch=(32, 32))
config = TrainConfig(seed=seed, estimator=estimator, demonstrations=demonstrations, device="cpu", learner=learner)


class Resets(FiniteEnv):
    starts = []

    def reset(self, **arguments):
        observation, info = super().reset(**arguments)
        self.starts.append(observation.tolist())
        return observation, info


env = Resets(make_env(config), "training")
model = make_agent(config, env)
model.learn(500)
digest = hashlib.sha256()
for name, weight in sorted(model.policy.state_dict().items()):
    digest.update(weight.numpy().tobytes())
while len(env.starts) < 5:
    env.reset()
print(env.starts[:5])
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_processes_with_one_seed_do_the_same_and_with_another_something_else(files):
    environment = os.environ | {"PYTHONHASHSEED": "random"}
    arguments = [str(files["state"]), str(files["demonstrations"])]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, seed, *arguments], stdout=subprocess.PIPE, text=True, env=environment
        )
        for seed in ("1", "1", "2")
    ]
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    (starts, weights), again, (other_starts, other_weights) = outputs
    assert again == [starts, weights]
    assert other_starts != starts and other_weights != weights
