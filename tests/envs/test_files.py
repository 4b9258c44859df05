"""Only regular files are opened; what else has a file's name is named at once."""

import os
import socket

import pytest

from envs.files import check_replaceable, open_regular, read_regular


def test_a_regular_file_is_read_through_links_too(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "file") == read_regular(tmp_path / "link") == b"content"
    with open_regular(tmp_path / "file") as file:
        assert file.read(3) == b"con"


def test_other_kinds_are_named_without_opening_them(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
    cases = {"pipe": "a named pipe", "link": "a named pipe", "": "a directory", "socket": "a socket"}
    for name, kind in ((tmp_path / name, kind) for name, kind in [*cases.items(), ("/dev/zero", "a device")]):
        with pytest.raises(ValueError, match=f"^{name}: {kind}, not a regular file$"):
            open_regular(name)


def test_what_is_not_there_is_not_found(tmp_path):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "nowhere", tmp_path / "dangling", "a\0b"):
        with pytest.raises(FileNotFoundError):
            open_regular(path)


def test_only_a_regular_file_is_replaced(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "dangling", "nowhere", "no/where"):
        check_replaceable(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a named pipe"), (tmp_path, "a directory"), ("/dev/null", "a device")):
        with pytest.raises(ValueError, match=f"^{path}: {kind}, not a regular file$"):
            check_replaceable(path)
    with pytest.raises(NotADirectoryError):
        check_replaceable(tmp_path / "file" / "below")
