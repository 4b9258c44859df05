"""Evaluate a run and draw its learning curve; the run directory may be given, else a shipped one is taken."""

import sys
from pathlib import Path

import assets
from agents.evaluation import evaluate
from agents.report.curves import draw_curves
from agents.report.outcome import read_outcome
from agents.runs import load_policy
from agents.tasks import make_env

run = Path(sys.argv[1]) if sys.argv[1:] else assets.path("policies/push-slot-1-state")
policy, config = load_policy(run)
env = make_env(config)
result = evaluate(policy, env, episodes=20, seed=3_000_000)
env.close()
low, high = result.interval
print(f"{result.success_rate:.0%} of {result.episodes} episodes [{low:.0%}, {high:.0%}], {result.mean_steps} steps")
draw_curves({run.name: [read_outcome(run)]}, Path("curve.png"))
