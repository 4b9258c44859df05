"""The page in headless Chromium with software WebGL: drag the puck around the slot, save, and use the file."""

import json
import re
import signal
import subprocess
import sys

import pytest

import assets
from agents.train import main as train
from assets.examples.by_hand.drag import MOUSE, drag, open_page, save
from envs.demonstrations import load_demonstrations
from perception.visualize.__main__ import main

AGENT = assets.path("policies/push-slot-1-pointcloud")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The page, served by its command."""
    command = [sys.executable, "-m", "perception.visualize", "--web", "--port", "0", "--run", str(AGENT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = (re.match(r"(http://127\.0\.0\.1:\d+) ", line) for line in process.stdout)
            yield next(match[1] for match in found if match)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 130


def opened(browser, address, errors):
    """The page in a new window, with the errors and foreign requests of its scripts in a list."""
    page = open_page(browser, address)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "request", lambda request: request.url.startswith((address, "data:", "blob:")) or errors.append(request.url)
    )
    return page


@pytest.mark.slow
def test_a_mouse_drags_the_puck_around_the_slot_and_an_agent_trains_on_it(browser, address, tmp_path):
    errors = []
    other = opened(browser, address, errors)
    page = opened(browser, address, errors)
    page.get_by_role("button", name="play the policy").click()
    for client in (page, other):  # all clients see the same
        client.get_by_text(re.compile(r"agent .* success after \d\d steps")).wait_for(timeout=30_000)
    page.get_by_role("tab", name="By hand").click()
    page.get_by_role("button", name="take back a second").click()  # of nothing
    page.get_by_role("button", name="start anew").click()
    page.get_by_text("0 steps, 23.4 cm from the goal").wait_for()
    other.close()
    drag(page, MOUSE["mouse"][:30])
    page.mouse.up()
    page.get_by_role("button", name="save").click()
    page.get_by_text(re.compile(r"ends \d+\.\d cm from the goal")).wait_for()  # not yet there
    page.get_by_role("button", name="start anew").click()
    page.get_by_text("0 steps, 23.4 cm from the goal").wait_for()
    drag(page, MOUSE["mouse"])
    page.mouse.up()
    page.get_by_text(re.compile(r"\d\d steps, [01]\.\d cm from the goal")).wait_for()
    file = tmp_path / "by-hand.hdf5"
    save(page, file)
    assert not errors
    (made,) = load_demonstrations(file, "pointcloud")
    assert made.actions is None and 50 < made.horizon < 120
    words = "--obs state --steps 300 --method potential+annealing+guide --parallel off --evaluation.every 300"
    small = "--evaluation.episodes 1 --evaluation.final-episodes 1 --learner.learning-starts 100"
    train([*words.split(), *small.split(), "--demonstrations", str(file), "--out", str(tmp_path / "run")])
    assert json.loads((tmp_path / "run" / "result.json").read_text())["environment_steps"] == 300


@pytest.mark.slow
def test_a_client_that_vanishes_while_it_drags_lets_go(browser, address):
    errors = []
    page = opened(browser, address, errors)
    page.get_by_role("tab", name="By hand").click()
    page.get_by_role("button", name="start anew").click()
    page.get_by_text("0 steps, 23.4 cm from the goal").wait_for()
    drag(page, MOUSE["mouse"][:12])
    page.close()
    page = opened(browser, address, errors)
    page.get_by_role("tab", name="By hand").click()
    there = page.get_by_text(re.compile(r"\d+ steps, \d+\.\d cm from the goal"))
    before = there.inner_text()
    page.wait_for_timeout(1000)
    assert there.inner_text() == before and not before.startswith("0 steps")
    page.get_by_role("tab", name="Camera").click()
    page.get_by_text(re.compile(r"pixels in the image are not hidden")).wait_for()
    page.get_by_label("move the camera").check()
    page.get_by_role("tab", name="By hand").click()
    page.get_by_role("button", name="stop").click()
    page.get_by_text("no training is running").wait_for()
    page.get_by_role("tab", name="Episode").click()
    page.get_by_text("what is shown").click()
    page.get_by_text("the 20 points that the agent sees").wait_for()
    page.get_by_role("tab", name="Run").click()
    page.get_by_text(re.compile(r"\d+ % after \d+ steps")).wait_for()
    assert not errors


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--port 9000", "--port has an effect with --web only"),
        ("--web --port 70000", "--port is 70000; it must lie in"),
        ("--web --host 192.0.2.1", "--host 192.0.2.1 --port 8080: Cannot assign requested address; choose another"),
        ("--web --port 0 --cameras nowhere", "unknown camera 'nowhere'"),
        ("--web --port 0 --renderer paint", "--renderer: unknown renderer 'paint'"),
        ("--web --port 0 --run nowhere", "nowhere: no such run directory"),
        ("--web --out pictures", "--out has an effect without --web only"),
        ("--web --radius 0.08 0.1", "--web shows one --combine and one --radius"),
        ("--web --task a:B", "--web has no effect with --task a:B"),
    ],
)
def test_what_cannot_be_served_is_one_line(words, reason, capsys):
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert end.value.code == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert reason in line


def test_a_port_in_use_is_one_line(capsys):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit):
            main(["--web", "--port", str(port)])
    assert f"--port {port}: Address already in use; choose another, or --port 0" in capsys.readouterr().err
