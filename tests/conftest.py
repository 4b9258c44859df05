"""Set-up shared by all tests; pyproject.toml has the annotations of the packages checked while they run."""

import os
import shutil

# Before MuJoCo is imported: render without a display, one thread in each worker.
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import jaxtyping
import pytest


@pytest.fixture(autouse=True)
def _untyped(request):
    """Let a test marked `untyped` hand over what the annotations rule out, to see what users get to read."""
    unchecked = request.node.get_closest_marker("untyped") is not None
    jaxtyping.config.update("jaxtyping_disable", unchecked)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def browser():
    """Headless Chromium with software WebGL."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium: sudo apt-get install -y chromium")
    from playwright.sync_api import sync_playwright

    from assets.examples.by_hand.drag import ARGUMENTS

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield opened
        opened.close()
