"""Drag the puck around the slot with a recorded mouse, in headless Chromium: writes by-hand.hdf5 and page.gif.

python assets/examples/by_hand/drag.py --out by-hand
"""

import io
import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tyro
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import assets

# Software WebGL, and no traffic of the browser's own.
ARGUMENTS = (
    *("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),
    *("--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
MOUSE = json.loads(assets.path("examples/by_hand/mouse.json").read_text())
PAUSE = 70  # between two positions of the mouse [ms]
WIDTH = 720  # of the film [pixels]


@dataclass(frozen=True)
class DragConfig:
    """Drag the puck around the slot with a recorded mouse, and film the page."""

    out: Path = Path("by-hand")
    """Directory to write to."""


def open_page(browser: object, address: str) -> Page:
    """Open the page in a window of the size for which the mouse was recorded, and wait for its first episode."""
    width, height = MOUSE["viewport"]
    page: Page = browser.new_page(viewport={"width": width, "height": height})  # type: ignore[attr-defined]
    page.goto(address)
    page.get_by_text(re.compile(r"success after \d+ steps")).wait_for(timeout=60_000)
    return page


def drag(page: Page, points: list[list[float]], look: object = None) -> None:
    """Press the left button and move the mouse over points [pixels]; calls `look` now and then."""
    page.mouse.move(*points[0])
    page.mouse.down()
    for number, point in enumerate(points):
        page.mouse.move(*point)
        page.wait_for_timeout(PAUSE)
        if callable(look) and number % 3 == 0:
            look()
    page.wait_for_timeout(1500)


def save(page: Page, file: Path) -> None:
    """Save what was dragged."""
    page.locator("input[value='demonstrations/by-hand.hdf5']").fill(str(file))
    page.keyboard.press("Tab")
    page.wait_for_timeout(500)
    page.get_by_role("button", name="save").click()
    page.get_by_text(f"{file.name}: ").wait_for(timeout=60_000)


def play(page: Page, file: Path, frames: list[Image.Image]) -> None:
    """Drag the puck and save its path, show Φ of the new demonstration, and replay it, all on film."""

    def look() -> None:
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        size = WIDTH, round(WIDTH * picture.height / picture.width)
        frames.append(picture.resize(size, Image.Resampling.LANCZOS).quantize(256, Image.Quantize.MAXCOVERAGE))

    page.get_by_text("Software WebGL rendering detected").wait_for(timeout=20_000)
    page.locator("button.mantine-Notification-closeButton").first.click()
    page.get_by_role("tab", name="By hand").click()
    page.get_by_role("button", name="start anew").click()
    page.get_by_text("0 steps, ").wait_for()
    drag(page, MOUSE["mouse"], look)
    page.mouse.up()
    save(page, file)
    page.get_by_role("tab", name="Potential").click()
    page.get_by_role("checkbox").click()
    page.mouse.move(1, 700)
    page.wait_for_timeout(6000)
    look()
    page.get_by_role("tab", name="Episode").click()
    page.get_by_role("checkbox").click()
    page.mouse.move(1, 700)
    for _ in range(16):
        page.wait_for_timeout(150)
        look()


def main() -> None:
    """Serve the page, and write what is dragged and the film."""
    out = tyro.cli(DragConfig).out.absolute()
    if (out / "by-hand.hdf5").exists():
        raise SystemExit(f"{out / 'by-hand.hdf5'} exists already; choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "perception.visualize", "--web", "--port", "0"]
    frames: list[Image.Image] = []
    if not (chromium := shutil.which("chromium")):
        raise SystemExit("no Chromium: sudo apt-get install -y chromium")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        try:
            assert server.stdout is not None
            lines = (re.match(r"(http://\S+) ", line) for line in server.stdout)
            address = next(found[1] for found in lines if found)
            with closing(playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))) as browser:
                play(open_page(browser, address), out / "by-hand.hdf5", frames)
        finally:
            server.terminate()
    frames[0].save(out / "page.gif", save_all=True, append_images=frames[1:], duration=200, loop=0)
    print(f"wrote {out}: by-hand.hdf5, page.gif")


if __name__ == "__main__":
    main()
