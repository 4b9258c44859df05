"""A window needs a display that answers."""

import socket

import pytest

from perception.visualize import clouds
from perception.visualize.__main__ import main
from tests.agents.one_line import one_line


@pytest.mark.parametrize(
    "display", [{}, {"DISPLAY": ":99"}, {"WAYLAND_DISPLAY": "wayland-99"}, {"DISPLAY": ":99", "WAYLAND_DISPLAY": "w"}]
)
def test_window_needs_a_display(tmp_path, capsys, monkeypatch, display):
    """Also where one is named and nothing is there: Open3D would draw into an image, and wait."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in display.items():
        monkeypatch.setenv(name, value)
    error = one_line(main, ["--out", str(tmp_path / "new"), "--window"], capsys)
    assert next(iter(display.values()), "DISPLAY is set") in error
    assert not (tmp_path / "new").exists()


def test_a_display_that_does_not_answer(tmp_path, capsys, monkeypatch):
    """X11 waits for as long as the connection is open."""
    monkeypatch.setattr(clouds, "PATIENCE", 2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setenv("DISPLAY", f"127.0.0.1:{server.getsockname()[1] - 6000}")
        assert "no answer within 2 s" in one_line(main, ["--out", str(tmp_path / "new"), "--window"], capsys)
