"""The examples run, and the README shows them as they are, or names them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "assets/examples").glob("*.py"))
FEW = "60", "--evaluation.final-episodes", "1", "--learner.learning-starts", "30", "--learner.batch-size", "16"
SHORTER = {
    '"--steps", "2000"': f'"--steps", {", ".join(map(repr, FEW))}',
    '"--steps", "20000"': f'"--steps", {", ".join(map(repr, FEW))}, "--method", "buffer+potential"',
    "episodes=20": "episodes=2",
    "fit_value(play(), steps=20_000)": "fit_value(play(), steps=1_010, episodes=1, learner=short)",
    "from agents import fit_value": "from agents import fit_value\nfrom agents.prior.config import GoalLearnerConfig\n"
    "short = GoalLearnerConfig(value_steps=20)",
}


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    """As it is written, but for fewer steps."""
    program = tmp_path / example.name
    text = example.read_text()
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    program.write_text(text)
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_or_names_the_examples():
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE)
    programs = [example.read_text() for example in EXAMPLES]
    assert len(blocks) == 4 and set(blocks) < set(programs)
    assert all(f"(assets/examples/{example.name})" in readme for example in EXAMPLES)
    assert max(program.count("\n") for program in programs) <= 40
