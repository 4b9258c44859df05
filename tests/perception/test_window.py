"""A window needs a display that answers."""

import socket

import pytest

from perception.visualize import clouds
from perception.visualize.__main__ import main


def fails(capsys, arguments: list[str], named: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    error = capsys.readouterr().err
    assert stop.value.code == 2 and named in error and error.count("\n") == 1, error


@pytest.mark.parametrize(
    "display", [{}, {"DISPLAY": ":99"}, {"WAYLAND_DISPLAY": "wayland-99"}, {"DISPLAY": ":99", "WAYLAND_DISPLAY": "w"}]
)
def test_window_needs_a_display(tmp_path, capsys, monkeypatch, display):
    """Also where one is named and nothing is there: Open3D would draw into an image, and wait."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in display.items():
        monkeypatch.setenv(name, value)
    fails(capsys, ["--out", str(tmp_path / "new"), "--window"], next(iter(display.values()), "DISPLAY is set"))
    assert not (tmp_path / "new").exists()


def test_a_display_that_does_not_answer(tmp_path, capsys, monkeypatch):
    """X11 waits for as long as the connection is open."""
    monkeypatch.setattr(clouds, "PATIENCE", 2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setenv("DISPLAY", f"127.0.0.1:{server.getsockname()[1] - 6000}")
        fails(capsys, ["--out", str(tmp_path / "new"), "--window"], "no answer within 2 s")
