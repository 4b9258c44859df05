"""The README's Python blocks run as they are written, but for fewer steps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.DOTALL | re.MULTILINE)
SHORTER = "--steps 60 --evaluation.final-episodes 1 --learner.learning-starts 30 --learner.batch-size 16"


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_block(block, tmp_path):
    program = tmp_path / "block.py"
    program.write_text(block.replace("--steps 2000", SHORTER))
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_blocks():
    assert len(BLOCKS) == 2
