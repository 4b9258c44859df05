"""The examples run, and the README shows them as they are, or names them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "assets/examples").glob("*.py"))
SHORTER = "--steps 60 --evaluation.final-episodes 1 --learner.learning-starts 30 --learner.batch-size 16"


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    """As it is written, but for fewer steps."""
    program = tmp_path / example.name
    program.write_text(example.read_text().replace("--steps 2000", SHORTER).replace("episodes=20", "episodes=2"))
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_or_names_the_examples():
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE)
    programs = [example.read_text() for example in EXAMPLES]
    assert len(blocks) == 3 and set(blocks) < set(programs)
    assert all(f"(assets/examples/{example.name})" in readme for example in EXAMPLES)
    assert max(program.count("\n") for program in programs) <= 40
